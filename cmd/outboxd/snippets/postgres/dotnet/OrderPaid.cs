using System.Data;
using Dapper;

// .NET, Dapper. Connection: new NpgsqlConnection("...") of Npgsql, opened.
//   - The transaction goes into every call: one without it is an error, or outside of the transaction.
//   - payload is a byte[], and convert_from makes text of it: the bytes stay what they are.
//   - EF Core: one SaveChanges is one transaction; ValueGeneratedOnAdd on id, and ExcludeFromMigrations on the table.
//   - Only the columns that you set: an explicit null in id, due_at, headers and the like is refused.
static class Orders
{
    public static void Pay(IDbConnection connection, long order, byte[] payload)
    {
        using var transaction = connection.BeginTransaction(); // rolls back what was not committed
        connection.Execute("UPDATE shop_order SET paid = true WHERE id = @order", new { order }, transaction);
        connection.Execute(
            "INSERT INTO outbox (aggregatetype, aggregateid, type, payload) VALUES ('orders', @key, 'order_paid', convert_from(@payload, 'UTF8'))",
            new { key = order.ToString(), payload }, transaction);
        transaction.Commit();
    }
}
