package tracing

import (
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/outboxd/outboxd/relay"
)

const kafka = "kafka" // messaging.system

// attributes are those of OpenTelemetry's conventions for messaging that are known before the send, and a few of ours.
func (s *sink) attributes(m *relay.Message) []attribute.KeyValue {
	list := []attribute.KeyValue{
		attribute.String("messaging.system", s.to.System),
		attribute.String("messaging.operation.name", "send"),
		attribute.String("messaging.operation.type", "send"),
		attribute.String("messaging.message.id", m.WireKey),
		attribute.String("outboxd.type", m.Type),
		attribute.String("outboxd.routing_key", m.RoutingKey),
		attribute.Int("outboxd.attempt", m.Attempt()),
	}
	if s.to.System != kafka {
		list = append(list, attribute.String("messaging.destination.name", s.to.Name))
	} else {
		list = append(list, s.ofKafka(m)...)
	}
	if s.to.Server != "" {
		list = append(list, attribute.String("server.address", s.to.Server))
	}
	if s.to.Port > 0 {
		list = append(list, attribute.Int("server.port", s.to.Port))
	}
	return list
}

func (s *sink) ofKafka(m *relay.Message) []attribute.KeyValue {
	topic := strings.NewReplacer("{routing_key}", m.RoutingKey, "{type}", m.Type).Replace(s.to.Topic)
	list := []attribute.KeyValue{attribute.String("messaging.destination.name", topic)}
	if topic != s.to.Topic {
		list = append(list, attribute.String("messaging.destination.template", s.to.Topic))
	}
	if m.AggregateID != nil {
		list = append(list, attribute.String("messaging.kafka.message.key", *m.AggregateID))
	}
	return list
}

// outcome is what is known after the send.
func (s *sink) outcome(o relay.Outcome) []attribute.KeyValue {
	list := []attribute.KeyValue{attribute.String("outboxd.outcome", string(o.Kind))}
	if o.Kind != relay.KindDone {
		return append(list, attribute.String("error.type", o.Class))
	}
	partition, text, _ := strings.Cut(o.Result, "@")
	if offset, err := strconv.ParseInt(text, 10, 64); err == nil && s.to.System == kafka {
		list = append(list, attribute.String("messaging.destination.partition.id", partition), attribute.Int64("messaging.kafka.offset", offset))
	}
	return list
}
