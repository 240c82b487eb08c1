package httpapi

import (
	"errors"
	"net/http"

	"urlserver/configs"
)

// Reloaded is the reply of /api/reload: what became of each setting that has changed.
type Reloaded struct {
	Applied []string         `json:"applied"` // in force now
	Refused []RefusedSetting `json:"refused"` // not in force
	// listeners whose certificates were read again: "spider", "frontier"
	Certificates []string `json:"certificates"`
}

// RefusedSetting is a changed setting that is not in force.
type RefusedSetting struct {
	Setting string `json:"setting"`
	Why     string `json:"why"`
}

// RefusedSettings is the error of a settings file that cannot be used; nothing has changed.
type RefusedSettings struct{ Err error }

func (r RefusedSettings) Error() string { return r.Err.Error() }

// Unwrap returns what is wrong with the file.
func (r RefusedSettings) Unwrap() error { return r.Err }

func (s *Server) serveReload(w http.ResponseWriter, r *http.Request) error {
	if s.reload == nil {
		return httpError{http.StatusNotFound, "this daemon has no settings file to read again"}
	}
	s.log.Info().Str("by", r.RemoteAddr).Msg("operator has the settings read again")
	became, err := s.reload(r.Context())
	if bad, is := errors.AsType[RefusedSettings](err); is {
		writeJSON(w, http.StatusUnprocessableEntity, map[string]any{"error": bad.Error(), "mistakes": mistakes(err)})
		return nil
	}
	if err != nil {
		return err
	}
	for _, list := range []*[]string{&became.Applied, &became.Certificates} {
		if *list == nil {
			*list = []string{}
		}
	}
	if became.Refused == nil {
		became.Refused = []RefusedSetting{}
	}
	writeJSON(w, http.StatusOK, became)
	return nil
}

// mistakes lists the mistakes of a settings file.
func mistakes(err error) []string {
	list := []string{}
	if e, is := errors.AsType[*configs.Error](err); is {
		for _, m := range e.Mistakes {
			list = append(list, m.String())
		}
	}
	return list
}
