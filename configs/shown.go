package configs

// Source says where a setting has its value from.
type Source int

// The sources, each of which goes before those above it.
const (
	FromDefault Source = iota
	FromFile
	FromEnvironment
	FromFlag // an argument of the command line
)

// String is the source's name: "default", "file", "environment" or "flag".
func (s Source) String() string {
	return [...]string{"default", "file", "environment", "flag"}[s]
}

// Shown is a setting for people to look at.
type Shown struct {
	Name    string
	Value   string // as TOML, "***" for a token
	Default bool   // it is as it would be without a file
	Source  Source // of a configuration that LoadWith has read
	Live    bool   // a running daemon can take another value over
}

// Shown is every setting, in the order of the sample.
func (c Config) Shown() (all []Shown) {
	usual := Default()
	for _, s := range settings() {
		all = append(all, Shown{Name: s.name, Value: s.shown(&c), Default: s.text(&c) == s.text(&usual),
			Source: c.sources[lower(s.name)], Live: s.live})
	}
	return all
}

// shown is text without secrets.
func (s *setting) shown(c *Config) string {
	if s.secret && s.text(c) != `""` {
		return tomlString(hidden)
	}
	return s.text(c)
}

// sources returns the source of each setting that does not have its default, by lower-case name.
func (r *reader) sources() map[string]Source {
	all := map[string]Source{}
	for name := range r.set {
		all[name] = FromFile
	}
	if r.rulesAt > 0 {
		all[rulesKey] = FromFile
	}
	for name, o := range r.overrides {
		all[name] = o.Source
	}
	return all
}
