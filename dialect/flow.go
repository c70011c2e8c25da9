package dialect

import "context"

// Flow is what lately went through an outbox: the messages that were created last, and the sends that were recorded last.
// Nothing indexes when a message was done, so a message is counted by when it was created.
type Flow struct {
	Messages []Passed
	Sends    []Sent // those that went out and were not done, and lapses
}

// Passed is a message.
type Passed struct {
	RoutingKey string `json:"routing_key"`
	Type       string `json:"type"`
	State      string `json:"state"`
	Age        Age    `json:"age"`  // since it was created
	Took       *Age   `json:"took"` // from there to done; nil: it is not done
}

// Sent is a row of outbox_attempt. Of a message that retention removed, routing key and type are empty.
type Sent struct {
	RoutingKey string `json:"routing_key"`
	Type       string `json:"type"`
	Outcome    string `json:"outcome"`
	Age        Age    `json:"age"` // since it began
}

// Flow reads so many messages and so many sends at most, the newest ones by their keys, newest first.
func (i *Inspector) Flow(ctx context.Context, limit int) (f Flow, err error) {
	if err = i.selectAll(ctx, "stats of messages", &f.Messages, i.Texts.Passed, limit); err != nil {
		return f, err
	}
	return f, i.selectAll(ctx, "stats of sends", &f.Sends, i.Texts.Sent, limit)
}
