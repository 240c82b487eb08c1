package configs

import (
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// EnvPrefix is what the names of variables begin with that stand for settings:
// URLSERVER_DOCINDEX_KIND is docindex.kind.
const EnvPrefix = "URLSERVER_"

// Override is a value that replaces what the file says for a setting.
type Override struct {
	Setting string // "docindex.kind"
	// Value is written as in the file, but a string needs no quotes, and a list may be written
	// with commas between.
	Value  string
	Name   string // what errors call it: the variable or the argument
	Source Source // FromEnvironment or FromFlag
}

// LoadWith is Load with values that replace those of the file. The last one for a setting counts.
// Where path is "", there is no file.
// Shown tells the sources of what it has read.
func LoadWith(path string, overrides []Override) (Config, error) {
	data, err := readFile(path)
	if err != nil {
		return Config{}, err
	}
	r := newReader(path)
	c, err := r.parseFiles(data, overrides)
	if err == nil {
		c.sources = r.sources()
	}
	return c, err
}

// Environ returns the values of settings in variables of the environment ("NAME=value").
// Tables are a list in TOML: URLSERVER_RULES=[{hosts = ["a.example"], per_sec = 1}].
func Environ(environ []string) (overrides []Override) {
	names := variables()
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		if setting, ok := names[name]; ok {
			overrides = append(overrides, Override{Setting: setting, Value: value, Name: name,
				Source: FromEnvironment})
		}
	}
	return overrides
}

// UnknownVariables returns the variables that look like one of a setting and are none, each with
// the likely setting's variable where one is spelt nearly so. others are variables that exist
// beside those of settings.
func UnknownVariables(environ []string, others ...string) (unknown []string) {
	names := variables()
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		if _, ok := names[name]; ok || !strings.HasPrefix(name, EnvPrefix) || slices.Contains(others, name) {
			continue
		}
		best, least := "", maxSlips+1
		for _, s := range settings() {
			if d := distance(name, envName(s.name), least); d < least {
				best, least = "; did you mean "+envName(s.name), d
			}
		}
		unknown = append(unknown, name+best)
	}
	slices.Sort(unknown)
	return unknown
}

// variables returns the setting of each variable.
func variables() map[string]string {
	names := map[string]string{}
	for _, s := range settings() {
		names[envName(s.name)] = s.name
	}
	return names
}

// envName is the variable of a setting.
func envName(setting string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(setting, ".", "_"))
}

// override puts values into the configuration that replace those of the file, or notes what is
// wrong with them.
func (r *reader) override(overrides []Override) {
	for _, o := range overrides {
		name := lower(o.Setting)
		s, ok := r.settings[name]
		if !ok {
			r.mistakes = append(r.mistakes, Mistake{Key: o.Name, Problem: "there is no setting " +
				shown(o.Setting)})
			continue
		}
		r.set[name] = 0
		delete(r.bad, name)
		r.overrides[name] = o
		if err := readText(&r.config, s, o.Value); err != nil {
			r.bad[name] = true
			r.mistakes = append(r.mistakes, Mistake{Key: o.Name, Problem: err.Error(), Allowed: s.allowed})
		}
	}
}

// readText sets one setting: by the value as TOML, else as a string, else as a list in TOML or of
// strings.
func readText(c *Config, s setting, value string) (err error) {
	readTOML := func(text string) (is bool, err error) {
		var m map[string]any
		if _, err := toml.Decode("v = "+text, &m); err != nil || len(m) != 1 {
			return false, nil
		}
		return true, s.read(c, m["v"])
	}
	is, err := readTOML(value)
	if is && (err == nil || isTables(s.name)) {
		return err
	}
	if err = s.read(c, value); err == nil {
		return nil
	}
	if is, wrong := readTOML("[" + value + "]"); is && wrong == nil {
		return nil
	}
	var list []any
	for _, one := range strings.Split(value, ",") {
		list = append(list, strings.TrimSpace(one))
	}
	if s.read(c, list) == nil {
		return nil
	}
	return err
}
