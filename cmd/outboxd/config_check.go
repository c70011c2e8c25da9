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
	l.checkRetention()
	if len(c.Instance) > maxInstance {
		l.fail("instance", "wants at most %d bytes", maxInstance)
	}
	l.between("relay.lease", c.Relay.Lease, time.Second, time.Hour)
	l.atLeastOne("relay.max_active", c.Relay.MaxActive)
	l.between("relay.stop_timeout", c.Relay.StopTimeout, 100*time.Millisecond, time.Hour)
	if _, _, err := net.SplitHostPort(c.HTTP.Listen); err != nil && c.HTTP.Listen != "off" {
		l.fail("http.listen", `wants an address with a port, such as ":9465", or off`)
	}
	var level slog.Level
	if level.UnmarshalText([]byte(c.Log.Level)) != nil {
		l.fail("log.level", "wants debug, info, warn or error")
	}
	l.oneOf("log.format", c.Log.Format, "auto", "text", "json")
	l.oneOf("trace.parent", c.Trace.Parent, traceLink, traceChild)
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
		l.checkRoute(routePath(i), &c.Routes[i])
	}
	l.checkEmits()
	l.warnSeries()
}

func (l *loaded) checkDestination(path string, d destinationConfig) {
	if strings.HasSuffix(path, "?") {
		l.fail(path, "a destination's name has letters, digits, '_', '-' and '.' only, 60 at most")
	}
	switch kinds := d.kinds(); {
	case kinds == 0:
		l.fail(path, "say what kind it is: kafka, webhook, program or stdout")
	case kinds > 1:
		l.fail(path, "give exactly one kind: kafka, webhook, program or stdout")
	case d.Kafka != nil:
		l.checkKafka(path+".kafka", d.Kafka)
	case d.Webhook != nil:
		l.checkWebhook(path, d)
	case d.Program != nil:
		l.checkProgram(path+".program", d.Program)
	}
	l.atLeastOne(path+".width", d.Width)
	if _, err := d.Rate.perSecond(); err != nil && l.set(path+".rate") {
		l.fail(path+".rate", "%s", err)
	}
	l.checkTimeout(path+".timeout", d.Timeout)
	l.atLeastOne(path+".breaker.run", d.Breaker.Run)
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

func (l *loaded) oneOf(path, value string, allowed ...string) {
	if l.set(path) && !slices.Contains(allowed, value) {
		l.fail(path, "wants %s", choice(allowed))
	}
}

func (l *loaded) between(path string, value, low, high time.Duration) {
	if l.set(path) && (value < low || value > high) {
		l.fail(path, "wants %s to %s", short(low), short(high))
	}
}

func (l *loaded) atLeastOne(path string, value int) {
	if l.set(path) && value < 1 {
		l.fail(path, "wants 1 or more")
	}
}

func (l *loaded) warn(path, words string) { l.warnings = append(l.warnings, path+": "+words) }
