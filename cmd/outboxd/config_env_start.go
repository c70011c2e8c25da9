package main

import (
	"reflect"
	"slices"
	"strings"
)

// The first two of these variables each make a destination and a route of all messages to it, where the file has neither.
const (
	envBrokers = "OUTBOXD_KAFKA_BROKERS"
	envURL     = "OUTBOXD_WEBHOOK_URL"
	envDedupe  = "OUTBOXD_WEBHOOK_DEDUPE"
	envOrdered = "OUTBOXD_WEBHOOK_ORDERED"

	defaultTopic = "outbox.event.{routing_key}" // as Debezium's router names it
)

// envKafka are the variables of such a Kafka destination and its route, the one that makes it first.
func envKafka() [][2]string {
	return [][2]string{
		{envBrokers, "destinations.kafka.kafka.brokers"},
		{"OUTBOXD_KAFKA_TOPIC", "destinations.kafka.kafka.topic"},
	}
}

// envWebhook are the same of a webhook.
func envWebhook() [][2]string {
	return [][2]string{
		{envURL, "destinations.webhook.webhook.url"},
		{envDedupe, "destinations.webhook.webhook.dedupe"},
		{envOrdered, "routes[0].ordered"},
		{"OUTBOXD_WEBHOOK_BEARER", "destinations.webhook.webhook.bearer"},
		{"OUTBOXD_WEBHOOK_BEARER_FILE", "destinations.webhook.webhook.bearer_file"},
		{"OUTBOXD_WEBHOOK_SECRETS", "destinations.webhook.webhook.secrets"},
		{"OUTBOXD_WEBHOOK_SECRETS_FILE", "destinations.webhook.webhook.secrets_file"},
	}
}

// overlayDestination makes destination and route out of variables.
func (l *loaded) overlayDestination(env lookup) {
	kafka, webhook := setNames(env, envKafka()), setNames(env, envWebhook())
	given := slices.Concat(kafka, webhook)
	switch {
	case len(given) == 0:
	case len(l.config.Destinations)+len(l.config.Routes) > 0:
		l.fail(given[0], "it makes a destination and a route only where the file has none; unset it%s, or take "+
			"destinations and routes out of the file", rest(given))
	case len(kafka) > 0 && len(webhook) > 0:
		l.fail(given[0], "%s is set too, and only one destination is made of the environment; unset one of them, or name both in a file",
			webhook[0])
	case given[0] != envBrokers && given[0] != envURL:
		l.fail(given[0], "it needs %s beside it", either(len(kafka) > 0, envBrokers, envURL))
	case len(kafka) > 0:
		l.makeDestination(env, "kafka", destinationConfig{Kafka: &kafkaConfig{Topic: defaultTopic}}, envKafka())
	default:
		l.makeDestination(env, "webhook", destinationConfig{Webhook: &webhookConfig{}}, envWebhook())
	}
}

// makeDestination sets what the variables name in a destination of that name and kind, and in a route of all messages to it.
func (l *loaded) makeDestination(env lookup, name string, d destinationConfig, variables [][2]string) {
	route := routeConfig{Match: "*", To: name}
	for _, pair := range variables {
		variable, path := pair[0], pair[1]
		text, there := get(env, variable)
		if !there {
			l.wantsVariable(variable, path)
			continue
		}
		section, key := reflect.ValueOf(&d), strings.TrimPrefix(path, "destinations."+name+".")
		if inRoute, ok := strings.CutPrefix(path, "routes[0]."); ok {
			section, key = reflect.ValueOf(&route), inRoute
		}
		if err := setText(fieldAt(section, key), text); err != nil {
			l.refuse(variable, path, err.Error())
			continue
		}
		l.origins[path] = "environment " + variable
	}
	l.config.Destinations = map[string]destinationConfig{name: d}
	l.config.Routes = []routeConfig{route}
}

// wantsVariable refuses that a variable is not set which nobody but the receiver's owner can know.
func (l *loaded) wantsVariable(variable, path string) {
	switch variable {
	case envDedupe:
		l.refuse(variable, path, "it has no default: say how long the receiver remembers an Idempotency-Key, such as 24h, or never")
	case envOrdered:
		l.refuse(variable, path, "it has no default: say false, and messages of one aggregateid may overtake each other")
	}
}

// refuse notes a mistake in a variable, so that no check looks at the path again that it would set.
func (l *loaded) refuse(variable, path, words string) {
	l.fail(variable, "%s", words)
	l.decoder.broken[path] = true
}

// setNames are those of the variables that are set.
func setNames(env lookup, variables [][2]string) (names []string) {
	for _, pair := range variables {
		if _, there := get(env, pair[0]); there {
			names = append(names, pair[0])
		}
	}
	return names
}

// rest words the names behind the first: " and b, c".
func rest(names []string) string {
	if len(names) == 1 {
		return ""
	}
	return " and " + strings.Join(names[1:], ", ")
}
