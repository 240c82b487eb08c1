package configs

import (
	"strings"
	"testing"
)

func TestMonitorRules(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"SASL without a name", `security_protocol = "SASL_SSL"`, "needs monitor.sasl_username"},
		{"SASL without a password", "security_protocol = \"SASL_PLAINTEXT\"\nsasl_username = \"u\"",
			"needs monitor.sasl_username and monitor.sasl_password"},
		{"SASL", "security_protocol = \"SASL_PLAINTEXT\"\nsasl_username = \"u\"\nsasl_password = \"p\"", ""},
		{"files without TLS", `tls_ca = "f"`, "need monitor.security_protocol"},
		{"a certificate without its key", "security_protocol = \"SSL\"\ntls_cert = \"f\"",
			"monitor.tls_cert needs monitor.tls_key"},
		{"replies that are requests", "prefix = \"p\"\ninbound = [\"p.in\", \"p.outbound_app\"]",
			"p.outbound_app"},
		{"brokers without topics", "brokers = [\"a:1\"]\ninbound = []", "needs monitor.inbound"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse("u.toml", []byte("[monitor]\n"+tc.text+"\n"))
			if tc.want == "" && err != nil || tc.want != "" &&
				(err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%v; want %q", err, tc.want)
			}
		})
	}
}
