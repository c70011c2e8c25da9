package relay

import "time"

// Filter says which messages an operation is about, or a list shows. Fields that are empty match all; what is set must all
// hold.
type Filter struct {
	IDs           []string   `json:"ids,omitempty"`
	RoutingKey    string     `json:"routing_key,omitempty"`
	Type          string     `json:"type,omitempty"`
	SchemaVersion int        `json:"schema_version,omitempty"`
	State         State      `json:"state,omitempty"`
	Reason        Reason     `json:"reason,omitempty"`
	ErrorClass    string     `json:"error_class,omitempty"`
	Key           string     `json:"key,omitempty"`   // aggregateid
	Since         *time.Time `json:"since,omitempty"` // when the message came to its state; of one that is not final, when it was created
	Until         *time.Time `json:"until,omitempty"` // the same, and before

	Unresolved bool        `json:"-"` // of lists alone: nobody has resolved it; of failed ones: a person has to
	Routes     []RouteRule `json:"-"` // of lists alone: the first rule that matches the routing key takes it
}

// RouteRule tells of a route whether it is one that is asked for.
type RouteRule struct {
	Match string // a routing key; or with * at its end, all that begin so
	Takes bool
}

// Empty tells that a filter matches every message.
func (f Filter) Empty() bool {
	return len(f.IDs) == 0 && f.RoutingKey == "" && f.Type == "" && f.SchemaVersion == 0 && f.State == "" && f.Reason == "" &&
		f.ErrorClass == "" && f.Key == "" && f.Since == nil && f.Until == nil
}
