SELECT c.name, c.owner
FROM (SELECT name, owner FROM JSON_TABLE(?, '$[*]' COLUMNS (
  name varchar(400) CHARACTER SET utf8mb4 PATH '$[0]', owner varchar(255) CHARACTER SET utf8mb4 PATH '$[1]')) j LIMIT 1000000) s
STRAIGHT_JOIN /*schema.*/outbox_control c FORCE INDEX (PRIMARY) ON c.kind = 'breaker' AND c.name = s.name AND c.owner = s.owner
FOR UPDATE SKIP LOCKED;
