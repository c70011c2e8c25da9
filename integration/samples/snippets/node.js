// Calls the snippet of Node, a file named by the first argument, for each line of the standard input: port, character set,
// order, file of the payload. Says of each order whether it is paid.
const fs = require('fs');

const { payOrder } = require(process.argv[2]);
const { SHOP_DIALECT, SHOP_HOST: host, SHOP_USER: user, SHOP_PASSWORD: password, SHOP_DATABASE: database } = process.env;

async function open(port, charset) {
  if (SHOP_DIALECT === 'postgres') {
    const { Pool } = require('pg');
    const pool = new Pool({ host, port, user, password, database, max: 1 });
    await pool.query(`SET client_encoding TO ${charset}`);
    return pool;
  }
  const mysql = require('mysql2/promise');
  return mysql.createPool({ host, port, user, password, database, charset });
}

async function main() {
  for (const line of fs.readFileSync(0, 'utf8').trim().split('\n')) {
    const [port, charset, order, file] = line.split(' ');
    const pool = await open(port, charset);
    try {
      await payOrder(pool, Number(order), fs.readFileSync(file));
      console.log(`${order} paid`);
    } catch (error) {
      console.log(`${order} not paid: ${error.message}`);
    }
    await pool.end();
  }
}

main();
