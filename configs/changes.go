package configs

import "maps"

// Changes names the settings in which two configurations differ, in the order
// of the sample: those that a running daemon can take over, and those that need
// a restart.
func Changes(old, new Config) (live, restart []string) {
	for _, s := range settings() {
		switch {
		case s.text(&old) == s.text(&new) && (s.name != sharedKey || equalRules(old.shared, new.shared)):
		case s.live:
			live = append(live, s.name)
		default:
			restart = append(restart, s.name)
		}
	}
	return live, restart
}

// Apply is old with those settings of new that a running daemon can take over.
// If both are valid, so is the result: no rule joins a setting that can be
// taken over with one that cannot.
func Apply(old, new Config) Config {
	sources := maps.Clone(old.sources)
	for _, s := range settings() {
		if s.live {
			s.copy(&old, new)
			if sources != nil {
				sources[lower(s.name)] = new.sources[lower(s.name)]
			}
		}
	}
	old.sources = sources
	return old
}
