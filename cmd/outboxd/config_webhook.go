package main

import (
	"strings"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/sink/webhook"
)

type webhookConfig struct {
	URL    string `yaml:"url,omitempty"`
	Dedupe string `yaml:"dedupe,omitempty"` // how long the receiver remembers an Idempotency-Key
}

// sink is the sink's configuration, all but its time-out.
func (w *webhookConfig) sink(width int) webhook.Config {
	return webhook.Config{URL: w.URL, Width: width, UserAgent: "outboxd/" + builtFrom().Version}
}

// window is how long a repeat is safe.
func (w *webhookConfig) window() time.Duration {
	window, err := time.ParseDuration(w.Dedupe)
	if err != nil {
		return 0 // checkWebhook has refused it
	}
	return window
}

func (l *loaded) webhookSink(name string, d destinationConfig, p parts) (relay.Sink, error) {
	c := d.Webhook.sink(d.Width)
	c.Timeout = l.longestTimeout(name)
	sink, err := webhook.New(c, p.log)
	if err != nil {
		l.fail(join("destinations", name)+".webhook", "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
		return nil, &configError{file: l.file, problems: l.problems}
	}
	return sink, nil
}

func (l *loaded) checkWebhook(path string, w *webhookConfig) {
	if words, found := strings.CutPrefix(errorText(w.sink(0).Validate()), "webhook.url: "); found {
		l.fail(path+".url", "%s", words)
	}
	const least, most = time.Second, 10 * 365 * 24 * time.Hour
	switch window := w.window(); {
	case w.Dedupe == "never":
		l.fail(path+".dedupe", "never comes in a later release; say how long the receiver remembers an Idempotency-Key, such as 24h")
	case window < least || window > most:
		l.fail(path+".dedupe", "wants how long the receiver remembers an Idempotency-Key, such as 24h, and at least %s", short(least))
	}
}

// checkStated wants it said that messages of a destination without order may overtake each other.
func (l *loaded) checkStated(path string, r *routeConfig) {
	if l.config.Destinations[r.To].Webhook != nil && !l.set(path+".ordered") {
		l.fail(path, "say ordered: false: messages of one aggregateid may overtake each other on their way to a webhook")
	}
}
