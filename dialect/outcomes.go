package dialect

import (
	"context"
)

// SendOutcome counts recorded sends that came to the same.
type SendOutcome struct {
	Outcome    string  `json:"outcome"`     // retry, fail, unknown, lapse, or done with a long answer
	ErrorClass *string `json:"error_class"` // nil: none
	Sends      int     `json:"sends"`
	Since      Time    `json:"since"` // when the first of them began
}

// outcomesOf reads the end of outbox_attempt.
const outcomesOf = `
SELECT outcome, error_class, count(*) AS sends, min(started_at) AS since
FROM (SELECT outcome, error_class, started_at FROM /*schema.*/outbox_attempt ORDER BY attempt_id DESC LIMIT ?) a
GROUP BY outcome, error_class ORDER BY outcome, sends DESC, error_class`

// Outcomes counts the last sends that were recorded, CountBound at most: more tells that there may be others before. A done
// send is recorded only where its answer was long, and one of which nothing went out never is.
func (i *Inspector) Outcomes(ctx context.Context) (outcomes []SendOutcome, more bool, err error) {
	outcomes = []SendOutcome{}
	err = i.selectAll(ctx, "outcomes", &outcomes, outcomesOf, CountBound)
	sum := 0
	for _, o := range outcomes {
		sum += o.Sends
	}
	return outcomes, sum >= CountBound, err
}
