package kafka_test

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// pythonClient asks for info and prints the first reply, as users of other crawl controls do.
const pythonClient = `
import sys
from kafka import KafkaConsumer, KafkaProducer
broker, inbound, outbound, request = sys.argv[1:]
p = KafkaProducer(bootstrap_servers=broker)
p.send(inbound, request.encode()).get(60)
for m in KafkaConsumer(outbound, bootstrap_servers=broker, auto_offset_reset="earliest", consumer_timeout_ms=100000):
    print(m.value.decode())
    break
`

// Clients in Python produce and read.
func TestKafkaPython(t *testing.T) {
	if out, err := exec.Command("python3", "-c", "import kafka").CombinedOutput(); err != nil {
		t.Skipf("no kafka-python: %v: %.200s", err, out)
	}
	b := realBroker(t)
	cfg := settings(t, b)
	makeTopic(t, b, 1, cfg.Inbound[0], cfg.Prefix+".outbound_testapp")
	c := newCrawls()
	c.pending = 28
	start(t, cfg, doer(c))
	var errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "python3", "-c", pythonClient, b.addr, cfg.Inbound[0],
		cfg.Prefix+".outbound_testapp", info("python"))
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), `"uuid":"python"`) ||
		!strings.Contains(string(out), `"total_pending":28`) {
		t.Errorf("kafka-python got %q: %v\n%s", out, err, &errs)
	}
}
