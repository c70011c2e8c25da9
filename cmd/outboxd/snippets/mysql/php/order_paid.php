<?php

// PHP, PDO. Connection: new PDO('mysql:host=db;dbname=shop;charset=utf8mb4', $user, $password, [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]).
//   - The same connection for both statements, between beginTransaction and commit, and tables of InnoDB: MyISAM rolls nothing back.
//   - ERRMODE_EXCEPTION: where it is silent (the default before PHP 8), a commit follows an INSERT that failed.
//   - PARAM_LOB: the bytes stay what they are, whatever charset the connection has.
//   - No CREATE or ALTER TABLE in between: on MySQL they commit.
//   - Only the columns that you set: an explicit NULL in id, due_at, headers and the like is refused.
function payOrder(PDO $db, int $order, string $payload): void
{
    $db->beginTransaction();
    try {
        $db->prepare('UPDATE shop_order SET paid = true WHERE id = ?')->execute([$order]);

        $message = $db->prepare("INSERT INTO outbox (aggregatetype, aggregateid, type, payload) VALUES ('orders', ?, 'order_paid', ?)");
        $message->bindValue(1, (string) $order);
        $message->bindValue(2, $payload, PDO::PARAM_LOB);
        $message->execute();

        $db->commit();
    } catch (Throwable $e) {
        $db->rollBack();
        throw $e;
    }
}
