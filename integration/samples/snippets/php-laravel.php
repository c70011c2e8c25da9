<?php
// Calls the snippet of Laravel, a file named by the first argument, for each line of the standard input: port, character set,
// order, file of the payload. Says of each order whether it is paid.
use Illuminate\Database\Capsule\Manager;

require 'Illuminate/Database/autoload.php';

// Outside of an application, the manager has the methods that are called at the facade.
class_alias(Manager::class, 'Illuminate\Support\Facades\DB');
require $argv[1];

function connect(string $port, string $charset): void
{
    $manager = new Manager();
    $manager->addConnection([
        'driver' => getenv('SHOP_DIALECT') === 'postgres' ? 'pgsql' : 'mysql', 'sslmode' => 'disable', 'charset' => $charset,
        'host' => getenv('SHOP_HOST'), 'port' => $port, 'database' => getenv('SHOP_DATABASE'),
        'username' => getenv('SHOP_USER'), 'password' => getenv('SHOP_PASSWORD'),
    ]);
    $manager->setAsGlobal();
}

while (($line = fgets(STDIN)) !== false) {
    [$port, $charset, $order, $file] = explode(' ', trim($line));
    try {
        connect($port, $charset);
        payOrder((int) $order, file_get_contents($file));
        echo "$order paid\n";
    } catch (Throwable $e) {
        echo "$order not paid: ", strtok($e->getMessage(), "\n"), "\n";
    }
}
