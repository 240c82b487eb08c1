package httpapi

import (
	"errors"
	"net/http"

	"urlserver/configs"
)

// Reloaded is what became of settings that were read again: the answer of /api/reload.
type Reloaded struct {
	Applied      []string         `json:"applied"`      // they changed, and hold
	Refused      []RefusedSetting `json:"refused"`      // they changed, and do not hold
	Certificates []string         `json:"certificates"` // listeners whose files were read again: "spider", "frontier"
}

// RefusedSetting is one that is not in force, and why.
type RefusedSetting struct {
	Setting string `json:"setting"`
	Why     string `json:"why"`
}

// RefusedSettings is the error of a file that cannot be used: nothing has changed.
type RefusedSettings struct{ Err error }

func (r RefusedSettings) Error() string { return r.Err.Error() }

// Unwrap is what is wrong.
func (r RefusedSettings) Unwrap() error { return r.Err }

func (s *Server) serveReload(w http.ResponseWriter, r *http.Request) error {
	if s.reload == nil {
		return httpError{http.StatusNotFound, "this daemon has no settings file to read again"}
	}
	s.log.Info().Str("by", r.RemoteAddr).Msg("operator has the settings read again")
	told, err := s.reload(r.Context())
	if bad, is := errors.AsType[RefusedSettings](err); is {
		writeJSON(w, http.StatusUnprocessableEntity, map[string]any{"error": bad.Error(), "mistakes": mistakes(err)})
		return nil
	}
	if err != nil {
		return err
	}
	for _, list := range []*[]string{&told.Applied, &told.Certificates} {
		if *list == nil {
			*list = []string{}
		}
	}
	if told.Refused == nil {
		told.Refused = []RefusedSetting{}
	}
	writeJSON(w, http.StatusOK, told)
	return nil
}

// mistakes lists those of a settings file, one by one.
func mistakes(err error) []string {
	list := []string{}
	if e, is := errors.AsType[*configs.Error](err); is {
		for _, m := range e.Mistakes {
			list = append(list, m.String())
		}
	}
	return list
}
