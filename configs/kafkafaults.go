package configs

import (
	"fmt"
	"strings"
)

const (
	maxTopic  = 249                                // of Kafka
	maxPrefix = maxTopic - len(".outbound_") - 100 // leaves room for the application's name
	maxGroup  = 255
)

// topicFault checks the name of a Kafka topic.
func topicFault(s string) string {
	switch {
	case s == "" || s == "." || s == "..":
		return quoted(s) + " cannot name a topic"
	case strings.Trim(s, labelBytes+".") != "":
		return quoted(s) + " has characters that no topic has"
	case len(s) > maxTopic:
		return quoted(s) + " is too long"
	}
	return ""
}

func topicPrefixFault(s string) string {
	if len(s) > maxPrefix {
		return quoted(s) + " is too long"
	}
	return topicFault(s)
}

func groupFault(s string) string {
	if s == "" || len(s) > maxGroup || !printable(s, '!') {
		return quoted(s) + " cannot name a consumer group"
	}
	return ""
}

// requestsComeFrom is about topics of which one's replies would be requests again.
func requestsComeFrom(c Config) string {
	if len(c.Monitor.Brokers) > 0 && len(c.Monitor.Inbound) == 0 {
		return "monitor.brokers needs monitor.inbound, the topics that requests come from"
	}
	for _, topic := range c.Monitor.Inbound {
		if strings.HasPrefix(topic, c.Monitor.Prefix+".outbound_") {
			return fmt.Sprintf(
				"monitor.inbound has %s, which replies go to: each would be answered "+
					"again, for ever", shown(topic))
		}
	}
	return ""
}

func saslHasUser(c Config) string {
	if c.Monitor.SASL() && (c.Monitor.SASLUsername == "" || c.Monitor.SASLPassword == "") {
		return fmt.Sprintf(
			"monitor.security_protocol = %q needs monitor.sasl_username and monitor.sasl_password",
			c.Monitor.SecurityProtocol)
	}
	return ""
}

func kafkaFilesNeedTLS(c Config) string {
	if !c.Monitor.TLS() && c.Monitor.TLSCA+c.Monitor.TLSCert+c.Monitor.TLSKey != "" {
		return fmt.Sprintf("monitor.tls_ca, tls_cert and tls_key need monitor.security_protocol = %q or %q",
			ProtocolTLS, ProtocolSASLTLS)
	}
	return ""
}
