<?php

use Illuminate\Support\Facades\DB;

// PHP, Laravel. The table is written by DB::table: a model would want updated_at, and to change rows, which are the relay's.
//   - Both statements inside DB::transaction, on the same connection: DB::connection('other') has transactions of its own.
//   - Not in DB::afterCommit, nor by an event after the commit: a crash in between is the very gap that the outbox closes.
//   - charset stays utf8 in config/database.php, as it is by default: in another one, characters outside of ASCII get lost.
//   - Only the columns that you set: an explicit null in id, due_at, headers and the like is refused.
function payOrder(int $order, string $payload): void
{
    DB::transaction(function () use ($order, $payload) {
        DB::table('shop_order')->where('id', $order)->update(['paid' => true]);

        DB::table('outbox')->insert([
            'aggregatetype' => 'orders', 'aggregateid' => (string) $order, 'type' => 'order_paid', 'payload' => $payload,
        ]);
    });
}
