<?php
// What PHP's own web server runs for each request: receive of docs/receiving.md, whose file RECEIVE names, and a charge.
require getenv('RECEIVE');

function charge(PDO $db, string $body): string
{
    $command = json_decode($body);
    if (!is_int($command->order ?? null)) {
        throw new InvalidArgumentException('no order');
    }
    $db->prepare('INSERT INTO charge (order_id) VALUES (?)')->execute([$command->order]);
    $number = $db->lastInsertId();
    if (isset($command->until)) { // so long does the work take
        touch("$command->until.begun");
        while (!file_exists($command->until)) {
            usleep(20_000);
            clearstatcache();
        }
    }
    return json_encode(['id' => "charge-$number"]);
}

$db = new PDO(sprintf('mysql:host=%s;port=%s;dbname=%s;charset=utf8mb4', getenv('SHOP_HOST'), getenv('SHOP_PORT'), getenv('SHOP_DATABASE')),
    getenv('SHOP_USER'), getenv('SHOP_PASSWORD'), [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
[$status, $answer] = receive($db, array_change_key_case(getallheaders()), file_get_contents('php://input'));
http_response_code($status);
header('Content-Length: ' . strlen($answer));
echo $answer;
