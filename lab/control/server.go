package control

import (
	"encoding/json"
	"net/http"

	"github.com/slipway-platform/slipway/lab/fault"
)

// Handler serves status and faults.
func Handler(status func() Status, faults *fault.Set) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { reply(w, status()) })
	mux.HandleFunc("PUT /faults", func(w http.ResponseWriter, r *http.Request) {
		var f fault.Fault
		if err := json.NewDecoder(r.Body).Decode(&f); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := faults.On(f); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		reply(w, faults.List())
	})
	mux.HandleFunc("DELETE /faults", func(w http.ResponseWriter, r *http.Request) {
		kind, target := r.URL.Query().Get("kind"), r.URL.Query().Get("target")
		switch {
		case kind == "":
			faults.Clear()
		case !faults.Off(fault.Kind(kind), target):
			http.Error(w, "fault "+kind+" "+target+" is not on", http.StatusNotFound)
			return
		}
		reply(w, faults.List())
	})
	return mux
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
