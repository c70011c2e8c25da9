<?php

// PHP, PDO. Connection: new PDO('pgsql:host=db;dbname=shop', $user, $password, [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]).
//   - The same connection for both statements, between beginTransaction and commit: else a message tells of what never was.
//   - ERRMODE_EXCEPTION: where it is silent (the default before PHP 8), a commit follows an INSERT that failed.
//   - PARAM_LOB with convert_from: the bytes stay what they are, whatever client_encoding the session has.
//   - Only the columns that you set: an explicit NULL in id, due_at, headers and the like is refused.
function payOrder(PDO $db, int $order, string $payload): void
{
    $db->beginTransaction();
    try {
        $db->prepare('UPDATE shop_order SET paid = true WHERE id = ?')->execute([$order]);

        $message = $db->prepare("INSERT INTO outbox (aggregatetype, aggregateid, type, payload)
            VALUES ('orders', ?, 'order_paid', convert_from(?, 'UTF8'))");
        $message->bindValue(1, (string) $order);
        $message->bindValue(2, $payload, PDO::PARAM_LOB);
        $message->execute();

        $db->commit();
    } catch (Throwable $e) {
        $db->rollBack();
        throw $e;
    }
}
