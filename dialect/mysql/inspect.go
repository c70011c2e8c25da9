package mysql

import (
	"time"

	"github.com/outboxd/outboxd/dialect"
)

// inspector answers what people ask.
func (d *DB) inspector() *dialect.Inspector {
	return &dialect.Inspector{
		Read:   d.read,
		Render: func(text string) (string, error) { return render(text, d.schema) },
		Wrap:   wrap,
		Moment: func(t time.Time) any { return t.UTC() },
	}
}
