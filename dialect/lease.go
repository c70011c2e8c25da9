package dialect

import "context"

// Lease is a row of outbox_lease, without its messages.
type Lease struct {
	Relay     string
	ClaimedAt Time
	RenewedAt Time
	Length    Age // how long it may stand still before another relay takes it
}

// Lease returns the database's time, and the lease of that number; nil: its row does not exist.
func (i *Inspector) Lease(ctx context.Context, id int64) (now Time, lease *Lease, err error) {
	var found []struct {
		Now       Time
		Relay     *string
		ClaimedAt *Time `json:"claimed_at"`
		RenewedAt *Time `json:"renewed_at"`
		Length    *Age
	}
	if err := i.selectAll(ctx, "lease", &found, i.Texts.Lease, id); err != nil {
		return Time{}, nil, err
	}
	row := found[0]
	if row.Relay != nil {
		lease = &Lease{*row.Relay, *row.ClaimedAt, *row.RenewedAt, *row.Length}
	}
	return row.Now, lease, nil
}
