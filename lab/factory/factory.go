// Package factory simulates a Talos Image Factory, for rehearsals and tests. It is not production code.
//
// It accepts schematics and gives them the ids of the public factory. It serves ISO images that describe themselves
// instead of containing an operating system; Parse reads them, and the simulated Talos boots what they describe. Not
// modelled: image formats other than ISO, PXE, the registry of installer images, signatures, the web pages.
package factory

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Config configures a Factory. Its zero value is usable.
type Config struct {
	Versions []string     // Talos versions that it offers, e.g. "v1.12.7"; nil means DefaultVersions
	Log      *slog.Logger // nil discards
}

// DefaultVersions are the Talos versions of a factory without Config.Versions, oldest first.
var DefaultVersions = []string{
	"v1.11.5", "v1.12.0", "v1.12.1", "v1.12.2", "v1.12.3", "v1.12.4", "v1.12.5", "v1.12.6", "v1.12.7", "v1.13.0",
}

// Factory is a simulated Image Factory. It is safe for concurrent use. It keeps schematics in memory.
type Factory struct {
	versions []string
	log      *slog.Logger

	mu         sync.Mutex
	schematics map[string]Schematic
}

// New returns a factory without schematics.
func New(c Config) *Factory {
	f := &Factory{versions: c.Versions, log: c.Log, schematics: map[string]Schematic{}}
	if f.versions == nil {
		f.versions = DefaultVersions
	}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	return f
}

// Schematic returns the schematic with this id, if it was posted.
func (f *Factory) Schematic(id string) (Schematic, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.schematics[id]
	return s, ok
}

// Add stores a schematic and returns its id, as a POST does.
func (f *Factory) Add(s Schematic) (string, error) {
	id, err := s.ID()
	if err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.schematics[id] = s
	return id, nil
}

// Handler serves the factory's HTTP API.
func (f *Factory) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /schematics", f.postSchematic)
	mux.HandleFunc("GET /image/{schematic}/{version}/{file}", f.getImage)
	mux.HandleFunc("GET /versions", func(w http.ResponseWriter, _ *http.Request) { f.writeJSON(w, http.StatusOK, f.versions) })
	mux.HandleFunc("GET /version/{version}/extensions/official", f.getExtensions)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.log.Debug("request", "method", r.Method, "path", r.URL.Path)
		mux.ServeHTTP(w, r)
	})
}

func (f *Factory) postSchematic(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s, err := ParseSchematic(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	id, err := f.Add(s)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	f.log.Info("schematic", "id", id, "extensions", s.Customization.SystemExtensions.OfficialExtensions)
	f.writeJSON(w, http.StatusCreated, map[string]string{"id": id})
}

// getImage also answers HEAD: the standard library then omits the body and keeps the length.
func (f *Factory) getImage(w http.ResponseWriter, r *http.Request) {
	file := r.PathValue("file")
	content, status, err := f.image(r.PathValue("schematic"), r.PathValue("version"), file)
	if err != nil {
		http.Error(w, err.Error(), status)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/x-iso9660-image")
	h.Set("Content-Length", strconv.Itoa(len(content)))
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", file))
	if _, err := w.Write(content); err != nil && r.Method != http.MethodHead {
		f.log.Warn("image", "file", file, "err", err)
	}
}

func (f *Factory) image(id, version, file string) ([]byte, int, error) {
	s, ok := f.Schematic(id)
	if !ok {
		return nil, http.StatusNotFound, fmt.Errorf("schematic ID %q not found", id)
	}
	version, ok = f.version(version)
	if !ok {
		return nil, http.StatusNotFound, fmt.Errorf("version %s is not available", version)
	}
	m := fileName.FindStringSubmatch(file)
	if m == nil {
		return nil, http.StatusBadRequest, fmt.Errorf("invalid profile path: %q (the lab's factory builds <platform>-<arch>.iso and <platform>-<arch>-secureboot.iso)", file)
	}
	names := s.Customization.SystemExtensions.OfficialExtensions
	if missing := unknown(names); len(missing) > 0 {
		return nil, http.StatusBadRequest, fmt.Errorf("official extension %q is not available for Talos version %s", missing[0], version)
	}
	content, err := build(payload{Version: version, Schematic: id, Platform: m[1], Arch: m[2], Extensions: slices.Clone(names),
		SecureBoot: m[3] != ""})
	if err != nil {
		return nil, http.StatusInternalServerError, err
	}
	return content, http.StatusOK, nil
}

func (f *Factory) getExtensions(w http.ResponseWriter, r *http.Request) {
	version, ok := f.version(r.PathValue("version"))
	if !ok {
		http.Error(w, fmt.Sprintf("version %s is not available", version), http.StatusNotFound)
		return
	}
	type info struct {
		Name        string `json:"name"`
		Ref         string `json:"ref"`
		Digest      string `json:"digest"`
		Author      string `json:"author"`
		Description string `json:"description"`
	}
	out := make([]info, 0, len(official))
	for _, e := range official {
		ref := "ghcr.io/" + e.name + ":" + e.version
		digest := sha256.Sum256([]byte(ref))
		out = append(out, info{
			Name: e.name, Ref: ref, Digest: "sha256:" + hex.EncodeToString(digest[:]),
			Author: "Sidero Labs", Description: e.description,
		})
	}
	f.writeJSON(w, http.StatusOK, out)
}

// version returns v with a leading v, and whether the factory offers it.
func (f *Factory) version(v string) (string, bool) {
	if !strings.HasPrefix(v, "v") {
		v = "v" + v
	}
	return v, slices.Contains(f.versions, v)
}

func (f *Factory) writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		f.log.Warn("answer", "err", err)
	}
}
