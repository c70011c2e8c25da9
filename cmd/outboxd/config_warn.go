package main

import (
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// warnPolicy warns of a policy, by its key in a route, that works and is seldom meant.
func (l *loaded) warnPolicy(path string, r *routeConfig, key string) {
	p, own := l.policy(r, key), key == ""
	if key != "" {
		path = join(path+".types", key)
	}
	for _, name := range []string{".budget", ".base", ".cap", ".timeout"} {
		own = own || l.set(path+name)
	}
	if !own {
		return // the route's own says the same
	}
	l.warnShort(path, p)
	l.warnWindow(path, p, l.config.Destinations[r.To])
}

// warnShort warns where all tries of a message are over within ten minutes: a short outage that the breaker does not see
// ends it failed.
func (l *loaded) warnShort(path string, p relay.Policy) {
	if (l.set(path+".budget") || l.set(path+".base") || l.set(path+".cap")) && backoffs(p)/2 < 10*time.Minute {
		l.warn(path, "all its tries are over in less than 10 minutes; raise budget, base or cap")
	}
}

// warnWindow warns where the tries of a message can go on for longer than its destination remembers its key: one that may
// have taken effect early on would end failed for a person to look at, with tries left.
func (l *loaded) warnWindow(path string, p relay.Policy, d destinationConfig) {
	if words := windowWords(p, d.dedupe().Window); words != "" {
		l.warn(path, words)
	}
}

// windowWords is that warning, empty where the window is long enough, or there is none.
func windowWords(p relay.Policy, window time.Duration) string {
	if window == 0 || longestTries(p) <= window {
		return ""
	}
	return fmt.Sprintf("its tries can go on for %s, longer than the dedupe of its destination, %s: what may have taken effect "+
		"is then not sent again and ends as failed, unknown; lower budget or cap", short(longestTries(p).Round(time.Minute)), short(window))
}

// longestTries is the longest time from the first try of a message to the end of its last, as long as nobody asks for
// longer waits.
func longestTries(p relay.Policy) time.Duration {
	return backoffs(p) + time.Duration(p.Budget)*p.Timeout
}

// backoffs is the longest time that back-off spreads the tries of a message over, min(cap, base doubling); half of it is
// the shortest.
func backoffs(p relay.Policy) (sum time.Duration) {
	const most = 100 * 365 * 24 * time.Hour // before it overflows
	wait := p.Base
	for range p.Budget - 1 {
		sum += min(wait, p.Cap)
		if sum > most {
			return most
		}
		wait = min(2*wait, p.Cap)
	}
	return sum
}

// warnShown warns of what authenticates us and goes over a network without TLS.
func (l *loaded) warnShown(path, address string) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || onThisHost(u.Hostname()) {
		return
	}
	l.warn(path, "shows a secret on the way, since the URL has no https")
}

func onThisHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// warnSeries warns where the configuration names so much that not all of it can have metrics of its own.
func (l *loaded) warnSeries() {
	n := namedBy(l.config)
	if words := fit(n).folded(n); words != "" {
		l.warn("routes", "there would be more than 2000 series of metrics: "+words)
	}
}
