package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"
)

// InnoDB's lock time-outs are whole seconds, and a relay's are at most a sixth of its lease.
const shortestLease = 6 * time.Second

var errLease = errors.New("the lease is too short for MySQL and MariaDB, whose lock time-outs are whole seconds: set it to 6s or more")

// limits are the time-outs of a relay's sessions.
type limits struct {
	lock      time.Duration // wait for a lock of a row or a table: at most a sixth of the lease, 2 s at most; whole seconds
	statement time.Duration // 0: as the server has it
	patience  time.Duration // wait for a byte of the server; 0: for ever
	idle      time.Duration // until the server ends a session that asks nothing; 0: as the server has it
}

// limitsOf makes them out of the lease. A lease of 0 is a person's command, which may take its time.
func limitsOf(lease time.Duration) limits {
	if lease == 0 {
		return limits{lock: 2 * time.Second}
	}
	statement := min(max(lease/2, 5*time.Second), 30*time.Second)
	return limits{
		lock:      min((lease / 6).Truncate(time.Second), 2*time.Second),
		statement: statement,
		patience:  statement + 5*time.Second,
		idle:      max(lease/2, time.Minute), // longer than a third of the lease, which the watch waits
	}
}

// settings are the statements that begin every session, whatever the server's defaults and its init_connect are. The
// isolation level holds for statements outside of transactions, too; the variable behind it has a different name on each
// product. A collation other than the columns' could make the server compare without the index. MySQL knows no time-out
// of an idle transaction, so a relay whose host vanished in the middle of one keeps its locks until the session's end.
func (l limits) settings() []string {
	s := fmt.Sprintf(`SET NAMES utf8mb4 /*!80017 COLLATE utf8mb4_0900_bin */ /*M!100600 COLLATE utf8mb4_nopad_bin */,
autocommit = 1, time_zone = '+00:00',
sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION',
innodb_lock_wait_timeout = %[1]d, lock_wait_timeout = %[1]d`, seconds(l.lock))
	if l.statement > 0 {
		s += fmt.Sprintf(", wait_timeout = %d /*!80017 , max_execution_time = %d */ /*M!100600 , max_statement_time = %d, idle_transaction_timeout = 10 */",
			seconds(l.idle), l.statement.Milliseconds(), seconds(l.statement))
	}
	return []string{s, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE"}
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// connectTimeout bounds a connection's beginning: address, TLS, login, settings.
const connectTimeout = 5 * time.Second

// settled makes connections whose sessions have the settings, on a server that takes writes.
type settled struct {
	driver.Connector
	settings []string
}

// Connect is part of driver.Connector.
func (s *settled) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := s.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.begin(ctx, conn); err != nil {
		_ = conn.Close() // The first error tells more.
		return nil, err
	}
	return conn, nil
}

func (s *settled) begin(ctx context.Context, conn driver.Conn) error {
	session, ok := conn.(interface {
		driver.ExecerContext
		driver.QueryerContext
	})
	if !ok {
		return errors.ErrUnsupported
	}
	for _, text := range s.settings {
		if _, err := session.ExecContext(ctx, text, nil); err != nil {
			return err
		}
	}
	rows, err := session.QueryContext(ctx, "SELECT CAST(@@GLOBAL.read_only AS CHAR)", nil)
	if err != nil {
		return err
	}
	mode := make([]driver.Value, 1)
	err = rows.Next(mode)
	text := fmt.Sprintf("%s", mode[0]) // before Close, which reads on into the same buffer
	if err := errors.Join(err, rows.Close()); err != nil {
		return err
	}
	return writable(text)
}

// writable judges what a server says of its read_only.
func writable(mode string) error {
	if mode != "0" && mode != "OFF" {
		return errReadOnly
	}
	return nil
}
