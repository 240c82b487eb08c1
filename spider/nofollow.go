package spider

import "strings"

// headerNoFollow reports whether one of the X-Robots-Tag values asks agent, or all robots, not to
// follow the page's links. A value may name the robot that the rest of it is for: "otherbot:
// nofollow".
func headerNoFollow(values []string, agent string) bool {
	for _, value := range values {
		mine := true
		for part := range strings.SplitSeq(value, ",") {
			if name, rest, ok := strings.Cut(part, ":"); ok && !takesValue(name) {
				mine = strings.EqualFold(strings.TrimSpace(name), agent)
				part = rest
			}
			if mine && isNoFollow(part) {
				return true
			}
		}
	}
	return false
}

// takesValue reports whether the text before a colon is a rule, and not the name of a robot.
func takesValue(name string) bool {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "unavailable_after", "max-snippet", "max-image-preview", "max-video-preview":
		return true
	}
	// The date of an unavailable_after contains colons, and may follow a comma: "Sunday, 25 Jun
	// 2010 15:00:00 PST".
	return strings.Contains(strings.TrimSpace(name), " ")
}

// saysNoFollow reports whether the content of a meta robots tag forbids to follow links.
func saysNoFollow(content string) bool {
	for part := range strings.SplitSeq(content, ",") {
		if isNoFollow(part) {
			return true
		}
	}
	return false
}

func isNoFollow(rule string) bool {
	rule = strings.TrimSpace(rule)
	return strings.EqualFold(rule, "nofollow") || strings.EqualFold(rule, "none")
}
