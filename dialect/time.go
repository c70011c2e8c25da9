package dialect

import (
	"database/sql/driver"
	"fmt"
	"strconv"
	"time"
)

// Time is a time of a column, in UTC: engines give it as a time, or as microseconds since 1970.
type Time struct{ time.Time }

// Scan reads a column.
func (t *Time) Scan(value any) error {
	switch v := value.(type) {
	case time.Time:
		t.Time = v.UTC()
	case int64:
		t.Time = time.UnixMicro(v).UTC()
	default:
		return fmt.Errorf("a time comes as a time or as an integer of microseconds, not %T", value)
	}
	return nil
}

// Age is a length of time by the database's clock. It is seconds in JSON.
type Age time.Duration

// Scan reads microseconds.
func (a *Age) Scan(value any) error {
	micros, ok := value.(int64)
	if !ok {
		return fmt.Errorf("an age is an integer of microseconds, not %T", value)
	}
	*a = Age(FromMicros(micros))
	return nil
}

// Value is what Scan reads.
func (a Age) Value() (driver.Value, error) { return time.Duration(a).Microseconds(), nil }

// MarshalJSON writes seconds with their fraction.
func (a Age) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, time.Duration(a).Seconds(), 'f', -1, 64), nil
}

// String is for people: whole seconds from one minute on, milliseconds below.
func (a Age) String() string {
	d := time.Duration(a)
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return d.Round(time.Millisecond).String()
}
