INSERT INTO /*schema.*/outbox_control (kind, name, owner, value)
SELECT 'breaker', b.name, ?, b.value
FROM JSON_TABLE(?, '$[*]' COLUMNS (
  name varchar(400) CHARACTER SET utf8mb4 PATH '$[0]', value text CHARACTER SET utf8mb4 PATH '$[1]')) b
ON DUPLICATE KEY UPDATE value = b.value, updated_at = UTC_TIMESTAMP(6);
