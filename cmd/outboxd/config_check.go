package main

import (
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// check finds what is well written and cannot work, and warns of what works and is seldom meant. That there is a
// database and somewhere to send to, only `run` needs.
func (l *loaded) check() {
	c := &l.config
	if c.Database.source().given() > 1 {
		l.fail("database", "give exactly one of url, url_file and url_env")
	}
	l.oneOf("database.pooler", c.Database.Pooler, "transaction")
	if len(c.Relay.Name) > 100 {
		l.fail("relay.name", "wants at most 100 characters")
	}
	l.between("relay.lease", c.Relay.Lease, time.Second, time.Hour)
	l.between("relay.stop_timeout", c.Relay.StopTimeout, 100*time.Millisecond, time.Hour)
	if _, _, err := net.SplitHostPort(c.HTTP.Listen); err != nil && c.HTTP.Listen != "off" {
		l.fail("http.listen", `wants an address with a port, such as ":9465", or off`)
	}
	var level slog.Level
	if level.UnmarshalText([]byte(c.Log.Level)) != nil {
		l.fail("log.level", "wants debug, info, warn or error")
	}
	l.oneOf("log.format", c.Log.Format, "auto", "text", "json")
	prints := ""
	for _, name := range slices.Sorted(maps.Keys(c.Destinations)) {
		l.checkDestination(join("destinations", name), c.Destinations[name])
		if c.Destinations[name].Stdout == nil {
			continue
		}
		if prints != "" {
			l.fail(join("destinations", name), "there is one standard output, and %s writes to it; route to that", prints)
		}
		prints = name
	}
	for i := range c.Routes {
		l.checkRoute(fmt.Sprintf("routes[%d]", i), &c.Routes[i])
	}
}

func (l *loaded) checkDestination(path string, d destinationConfig) {
	if strings.HasSuffix(path, "?") {
		l.fail(path, "a destination's name has letters, digits, '_', '-' and '.' only, 60 at most")
	}
	switch kinds := d.kinds(); {
	case kinds == 0:
		l.fail(path, "say what kind it is: kafka, webhook or stdout")
	case kinds > 1:
		l.fail(path, "give exactly one kind: kafka, webhook or stdout")
	case d.Kafka != nil:
		l.checkKafka(path+".kafka", d.Kafka)
	case d.Webhook != nil:
		l.checkWebhook(path+".webhook", d.Webhook)
	}
	l.atLeast(path+".width", d.Width, 1)
	l.checkTimeout(path+".timeout", d.Timeout)
	l.atLeast(path+".breaker.run", d.Breaker.Run, 1)
	l.between(path+".breaker.pause", d.Breaker.Pause, time.Millisecond, time.Hour)
	l.between(path+".breaker.cap", d.Breaker.Cap, time.Millisecond, time.Hour)
}

// checkKafka finds what could show a secret that stands in the wrong place; kafka.Config.Validate finds the rest.
func (l *loaded) checkKafka(path string, k *kafkaConfig) {
	before := len(l.problems)
	for i, broker := range k.Brokers {
		if !hostPort(broker) {
			l.fail(fmt.Sprintf("%s.brokers[%d]", path, i), "wants host:port, such as kafka:9092")
		}
	}
	l.oneOf(path+".compression", k.Compression, "none", "gzip", "snappy", "lz4", "zstd")
	if s := k.SASL; s != nil {
		mechanisms := []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"}
		if !slices.Contains(mechanisms, s.Mechanism) {
			l.fail(path+".sasl.mechanism", "wants %s", choice(mechanisms))
		}
		if s.Mechanism != "OAUTHBEARER" && s.source().given() != 1 {
			l.fail(path+".sasl", "give exactly one of password, password_file and password_env")
		}
	}
	if len(l.problems) == before {
		l.validateKafka(path, k)
	}
}

func hostPort(address string) bool {
	host, port, err := net.SplitHostPort(address)
	_, portErr := strconv.ParseUint(port, 10, 16)
	return err == nil && portErr == nil && host != "" && !strings.ContainsAny(host, "@/")
}

func (l *loaded) checkRoute(path string, r *routeConfig) {
	l.checkMatch(path, r.Match)
	if _, there := l.config.Destinations[r.To]; !there {
		words := "names a destination that is not under destinations"
		if r.To == "" {
			words = "wants the name of a destination"
		} else if near := nearest(r.To, slices.Collect(maps.Keys(l.config.Destinations))); near != "" {
			words += "; did you mean " + near + "?"
		}
		l.fail(path+".to", "%s", words)
	}
	if r.Ordered {
		l.fail(path+".ordered", "order per key comes in a later release; take ordered out, or say false")
	}
	l.checkStated(path, r)
	l.checkPolicy(path, r.Policy)
	for _, name := range slices.Sorted(maps.Keys(r.Types)) {
		l.checkPolicy(join(path+".types", name), r.Types[name])
	}
	l.warnSpan(path, l.policy(r, ""))
	for _, name := range slices.Sorted(maps.Keys(r.Types)) {
		l.warnSpan(join(path+".types", name), l.policy(r, name))
	}
}

func (l *loaded) checkMatch(path, match string) {
	switch {
	case match == "":
		l.fail(path+".match", `wants a routing key, the start of one and "*", or "*" alone`)
	case strings.Contains(strings.TrimSuffix(match, "*"), "*"):
		l.fail(path+".match", `"*" can stand at the end only`)
	}
	for i, earlier := range l.config.Routes {
		here := fmt.Sprintf("routes[%d]", i)
		if here == path {
			return
		}
		if earlier.Match != "" && matches(earlier.Match, match) {
			l.fail(path+".match", "%s before it takes all of these messages; put this route first, or take it out", here)
			return
		}
	}
}

// matches tells whether a pattern fits a routing key, or all that another pattern fits.
func matches(pattern, key string) bool {
	prefix, open := strings.CutSuffix(pattern, "*")
	if open {
		return strings.HasPrefix(key, prefix)
	}
	return pattern == key
}

func (l *loaded) checkPolicy(path string, p policyConfig) {
	l.atLeast(path+".budget", p.Budget, 1)
	l.checkTimeout(path+".timeout", p.Timeout)
	l.between(path+".base", p.Base, time.Millisecond, 24*time.Hour)
	l.between(path+".cap", p.Cap, time.Millisecond, 7*24*time.Hour)
}

// checkTimeout also warns where a send may go on for longer than a stop waits: it would be cut off and count as a lapse.
func (l *loaded) checkTimeout(path string, timeout time.Duration) {
	l.between(path, timeout, 10*time.Millisecond, time.Hour)
	if l.set(path) && timeout > l.config.Relay.StopTimeout {
		l.warn(path, "longer than relay.stop_timeout: a stop can cut a send off")
	}
}

// warnSpan warns where all tries of a message are over within ten minutes: a short outage that the breaker does not see
// ends it failed.
func (l *loaded) warnSpan(path string, p relay.Policy) {
	if (l.set(path+".budget") || l.set(path+".base") || l.set(path+".cap")) && span(p) < 10*time.Minute {
		l.warn(path, "all its tries are over in less than 10 minutes; raise budget, base or cap")
	}
}

// span is the shortest time that back-off spreads the tries of a message over: half of min(cap, base doubling).
func span(p relay.Policy) time.Duration {
	var sum time.Duration
	wait := p.Base
	for range p.Budget - 1 {
		sum += min(wait, p.Cap) / 2
		if sum > 24*time.Hour {
			break
		}
		wait = min(2*wait, p.Cap)
	}
	return sum
}

func (l *loaded) oneOf(path, value string, allowed ...string) {
	if l.set(path) && !slices.Contains(allowed, value) {
		l.fail(path, "wants %s", choice(allowed))
	}
}

// choice words a list: a, b or c.
func choice(list []string) string {
	last := len(list) - 1
	if last == 0 {
		return list[0]
	}
	return strings.Join(list[:last], ", ") + " or " + list[last]
}

func (l *loaded) between(path string, value, low, high time.Duration) {
	if l.set(path) && (value < low || value > high) {
		l.fail(path, "wants %s to %s", short(low), short(high))
	}
}

// short prints a duration as a person writes it: 1h, not 1h0m0s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func (l *loaded) atLeast(path string, value, low int) {
	if l.set(path) && value < low {
		l.fail(path, "wants %d or more", low)
	}
}

func (l *loaded) warn(path, words string) { l.warnings = append(l.warnings, path+": "+words) }
