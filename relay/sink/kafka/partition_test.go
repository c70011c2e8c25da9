package kafka

import (
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/outboxd/outboxd/relay"
)

// TestKeysLandWhereJavaPutsThem sends keys whose murmur2 hash the tests of Kafka's Java client name, with the sign bit
// taken off, and expects the partition that a Java producer chooses.
func TestKeysLandWhereJavaPutsThem(t *testing.T) {
	t.Parallel()
	const partitions = 1000
	cluster := newCluster(t, kfake.SeedTopics(partitions, "wide"))
	sink := newSink(t, cluster.ListenAddrs(), nil)
	java := map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	}
	for key, hash := range java {
		m := newMessage("wide", "a")
		m.AggregateID = &key
		o := sink.Send(within(t, generous), m)
		wantKind(t, o, relay.KindDone, "")
		want := (hash & 0x7fffffff) % partitions
		if at, _, _ := strings.Cut(o.Result, "@"); at != strconv.Itoa(int(want)) {
			t.Errorf("key %q is in partition %s, want %d", key, at, want)
		}
	}
}

func TestNoKeySpreads(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t, kfake.SeedTopics(8, "wide"))
	sink := newSink(t, cluster.ListenAddrs(), nil)
	used := map[string]bool{}
	var messages []*relay.Message
	for range 200 {
		messages = append(messages, newMessage("wide", "a"))
	}
	for _, o := range sendAll(t, sink, messages) {
		at, _, _ := strings.Cut(o.Result, "@")
		used[at] = true
	}
	if len(used) < 4 {
		t.Errorf("200 messages without a key used %d of 8 partitions", len(used))
	}
}
