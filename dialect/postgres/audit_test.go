package postgres

import (
	"testing"

	"github.com/outboxd/outboxd/dialect/dialecttest"
)

func TestAudits(t *testing.T) {
	t.Parallel()
	dialecttest.TestAudits(t, func(t *testing.T) dialecttest.Backend { return seen{withRoles(t), t} })
}
