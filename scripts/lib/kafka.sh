# Apache Kafka from Maven's jars, one broker in KRaft mode. Sourced, not run.

kafka_version=${OUTBOXD_TEST_KAFKA_VERSION:-4.1.1}

fetch_kafka() {
  need mvn maven
  say "fetching Kafka $kafka_version"
  cat >"$1/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>outboxd</groupId><artifactId>test-kafka</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$kafka_version</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
POM
  mvn -q -B -f "$1/pom.xml" dependency:copy-dependencies -DoutputDirectory="$1/jars" >"$folder/maven.log" 2>&1 ||
    { tail -n 20 "$folder/maven.log" >&2; die "Maven could not fetch Kafka $kafka_version; its log is above"; }
}

up_kafka() {
  need java default-jre-headless
  fetched "kafka-$kafka_version" fetch_kafka
  local jars=$home/jars dir=$folder/kafka
  mkdir -p "$dir"
  free_port
  local broker=$port
  free_port
  # Topics do not appear by themselves: an unknown topic has to be an error.
  cat >"$dir/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$port
listeners=PLAINTEXT://127.0.0.1:$broker,CONTROLLER://127.0.0.1:$port
advertised.listeners=PLAINTEXT://127.0.0.1:$broker
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$dir/data
auto.create.topics.enable=false
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
PROPERTIES
  local id
  id=A$(head -c 16 /dev/urandom | base64 | tr '+/' '-_' | cut -c2-22) # one that began with - would be taken for an option
  java -cp "$jars/*" kafka.tools.StorageTool format -t "$id" -c "$dir/server.properties" >"$dir.log" 2>&1 ||
    { tail -n 30 "$dir.log" >&2; die 'Kafka: the storage could not be formatted; its log is above'; }
  (exec java -Xmx512m -cp "$jars/*" kafka.Kafka "$dir/server.properties") </dev/null >>"$dir.log" 2>&1 &
  wait_for Kafka $! "$dir.log" port_answers "$broker"
  export_var OUTBOXD_TEST_KAFKA_BROKERS "127.0.0.1:$broker"
  version "Apache Kafka $(java -cp "$jars/*" kafka.Kafka --version 2>/dev/null | cut -d ' ' -f 1)"
}
