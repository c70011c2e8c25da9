INSERT INTO /*schema.*/outbox_lease (lease_id, relay, claimed_at, renewed_at, length, ids)
SELECT ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), ?, ? FROM DUAL
WHERE COALESCE((
  SELECT COALESCE(NULLIF(CAST(IF(JSON_VALID(value), JSON_UNQUOTE(JSON_EXTRACT(value, '$.name')), NULL) AS BINARY), CAST('' AS BINARY)),
    CAST(value AS BINARY))
  FROM /*schema.*/outbox_control WHERE kind = 'instance' AND name = 'outbox' AND owner = ''), CAST('' AS BINARY)) = CAST(? AS BINARY);
