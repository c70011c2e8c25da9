package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Topics are made and read back with franz-go, which outboxd does not use: what it says of a topic is not our own word.

// brokers are the addresses of OUTBOXD_TEST_KAFKA_BROKERS.
func brokers(t *testing.T) []string {
	t.Helper()
	return strings.Split(need(t, "OUTBOXD_TEST_KAFKA_BROKERS"), ",")
}

func kafkaClient(t *testing.T, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(brokers(t)...)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// newTopic makes a topic with this many partitions and settings ("name=value"), and deletes it at the end of the test.
func newTopic(t *testing.T, partitions int32, settings ...string) string {
	t.Helper()
	return newTopicNamed(t, unique("outboxd.test"), partitions, settings...)
}

func newTopicNamed(t *testing.T, name string, partitions int32, settings ...string) string {
	t.Helper()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, 1
	for _, s := range settings {
		config := kmsg.NewCreateTopicsRequestTopicConfig()
		key, value, _ := strings.Cut(s, "=")
		config.Name, config.Value = key, &value
		topic.Configs = append(topic.Configs, config)
	}
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Topics, create.TimeoutMillis = append(create.Topics, topic), 30_000

	client := kafkaClient(t)
	defer client.Close()
	answer, err := create.RequestWith(t.Context(), client)
	if err == nil {
		err = kerr.ErrorForCode(answer.Topics[0].ErrorCode)
	}
	if err != nil {
		t.Fatalf("make topic %s: %v", name, err)
	}
	t.Cleanup(func() { deleteTopic(t, name) })
	eventually(t, patience, func() error { // a broker may hear of it later than who made it
		_, err := endsOf(t.Context(), client, name)
		return err
	})
	return name
}

func deleteTopic(t *testing.T, name string) {
	t.Helper()
	client := kafkaClient(t)
	defer client.Close()
	topic := kmsg.NewDeleteTopicsRequestTopic()
	topic.Topic = &name
	remove := kmsg.NewPtrDeleteTopicsRequest()
	remove.TopicNames, remove.Topics, remove.TimeoutMillis = []string{name}, append(remove.Topics, topic), 30_000
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	if _, err := remove.RequestWith(ctx, client); err != nil {
		t.Errorf("delete topic %s: %v", name, err)
	}
}

// topicEnds are the offsets behind the last record of each partition.
func topicEnds(t *testing.T, client *kgo.Client, topic string) map[int32]int64 {
	t.Helper()
	ends, err := endsOf(t.Context(), client, topic)
	if err != nil {
		t.Fatal(err)
	}
	return ends
}

func endsOf(ctx context.Context, client *kgo.Client, topic string) (map[int32]int64, error) {
	meta := kmsg.NewPtrMetadataRequest()
	asked := kmsg.NewMetadataRequestTopic()
	asked.Topic = &topic
	meta.Topics = append(meta.Topics, asked)
	found, err := meta.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(found.Topics[0].ErrorCode)
	}
	if err != nil {
		return nil, fmt.Errorf("look up topic %s: %w", topic, err)
	}

	ends := map[int32]int64{}
	list := kmsg.NewPtrListOffsetsRequest()
	list.ReplicaID = -1
	of := kmsg.NewListOffsetsRequestTopic()
	of.Topic = topic
	for _, p := range found.Topics[0].Partitions {
		end := kmsg.NewListOffsetsRequestTopicPartition()
		end.Partition, end.Timestamp = p.Partition, -1
		of.Partitions = append(of.Partitions, end)
	}
	list.Topics = append(list.Topics, of)
	for _, shard := range client.RequestSharded(ctx, list) {
		if shard.Err != nil {
			return nil, fmt.Errorf("list the offsets of %s: %w", topic, shard.Err)
		}
		for _, p := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics[0].Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return nil, fmt.Errorf("list the offsets of %s, partition %d: %w", topic, p.Partition, err)
			}
			ends[p.Partition] = p.Offset
		}
	}
	return ends, nil
}

// readTopic returns all records that the topic holds now.
func readTopic(t *testing.T, topic string) []*kgo.Record {
	t.Helper()
	client := kafkaClient(t)
	defer client.Close()
	ends := topicEnds(t, client, topic)
	from := map[int32]kgo.Offset{}
	for partition, end := range ends {
		if end > 0 {
			from[partition] = kgo.NewOffset().AtStart()
		}
	}
	if len(from) == 0 {
		return nil
	}
	client.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: from})

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var records []*kgo.Record
	for len(from) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("read topic %s: %v, after %d records", topic, err, len(records))
		}
		for r := range fetches.RecordsAll() {
			records = append(records, r)
			if r.Offset+1 >= ends[r.Partition] {
				delete(from, r.Partition)
			}
		}
	}
	return records
}

// header is the value of a record's header, and whether there is exactly one of that name.
func header(r *kgo.Record, name string) (string, bool) {
	value, found := "", 0
	for _, h := range r.Headers {
		if h.Key == name {
			value = string(h.Value)
			found++
		}
	}
	return value, found == 1
}

// place is where a record lies, as a message's result names it.
func place(r *kgo.Record) string {
	return fmt.Sprintf("%d@%d", r.Partition, r.Offset)
}
