<?php
// Calls the snippet of PHP, a file named by the first argument, for each line of the standard input: port, character set,
// order, file of the payload. Says of each order whether it is paid.
require $argv[1];

function connect(string $port, string $charset): PDO
{
    $where = 'host=' . getenv('SHOP_HOST') . ";port=$port;dbname=" . getenv('SHOP_DATABASE');
    $dsn = getenv('SHOP_DIALECT') === 'postgres'
        ? "pgsql:$where;sslmode=disable;options='--client_encoding=$charset'"
        : "mysql:$where;charset=$charset";
    return new PDO($dsn, getenv('SHOP_USER'), getenv('SHOP_PASSWORD'), [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
}

while (($line = fgets(STDIN)) !== false) {
    [$port, $charset, $order, $file] = explode(' ', trim($line));
    try {
        payOrder(connect($port, $charset), (int) $order, file_get_contents($file));
        echo "$order paid\n";
    } catch (Throwable $e) {
        echo "$order not paid: ", strtok($e->getMessage(), "\n"), "\n";
    }
}
