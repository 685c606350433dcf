// Package factory simulates a Talos Image Factory, for rehearsals and tests. It is not production code.
//
// It accepts schematics and gives them the ids of the public factory. It serves ISO images that describe themselves instead
// of containing an operating system; Parse reads them, and the simulated Talos boots what they describe. Its error texts are
// those of the public factory. Not modelled: disk images, kernels and the other parts of an image, PXE, the registry of
// installer images, overlays, signatures, lists of versions and extensions, the web pages.
package factory

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/Masterminds/semver/v3"
	"gopkg.in/yaml.v3"
)

// versions are the Talos versions that the factory offers, oldest first.
var versions = []string{
	"v1.11.5", "v1.12.0", "v1.12.1", "v1.12.2", "v1.12.3", "v1.12.4", "v1.12.5", "v1.12.6", "v1.12.7",
	"v1.13.0", "v1.13.1", "v1.13.2", "v1.13.3", "v1.13.4", "v1.13.5", "v1.13.6", "v1.13.7", "v1.13.8", "v1.13.9",
	"v1.14.0", "v1.14.1", "v1.14.2", "v1.14.3", "v1.14.4", "v1.14.5", "v1.14.6",
}

// Factory is a simulated Image Factory. It is safe for concurrent use. It keeps schematics in memory.
type Factory struct {
	log *slog.Logger

	mu         sync.Mutex
	schematics map[string]Schematic
}

// New returns a factory without schematics.
func New(log *slog.Logger) *Factory { return &Factory{log: log, schematics: map[string]Schematic{}} }

// Schematic returns the schematic with this id, if it was posted.
func (f *Factory) Schematic(id string) (Schematic, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.schematics[id]
	return s, ok
}

// Extensions returns the extensions in the images of the schematic with this id, if the schematic was posted and can be built.
func (f *Factory) Extensions(id string) ([]string, bool) {
	s, ok := f.Schematic(id)
	if !ok {
		return nil, false
	}
	extensions, missing := resolve(s.Customization.SystemExtensions.OfficialExtensions)
	return extensions, missing == ""
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
	for _, r := range []struct {
		path    string
		methods []string
		serve   http.HandlerFunc
	}{
		{"/healthz", []string{http.MethodGet, http.MethodHead}, func(http.ResponseWriter, *http.Request) {}},
		{"/schematics", []string{http.MethodPost}, f.postSchematic},
		{"/image/{schematic}/{version}/{file}", []string{http.MethodGet, http.MethodHead}, f.getImage},
	} {
		mux.Handle(r.path, only(r.methods, r.serve))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.log.Debug("request", "method", r.Method, "path", r.URL.Path)
		mux.ServeHTTP(w, r)
	})
}

// only refuses other methods as the public factory does. There, HEAD is a method of its own.
func only(methods []string, serve http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(methods, r.Method) {
			w.Header().Set("Allow", strings.Join(append(slices.Clone(methods), http.MethodOptions), ", "))
			http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
			return
		}
		serve(w, r)
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
	canonical, err := yaml.Marshal(s)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	if err := json.NewEncoder(w).Encode(map[string]string{"id": id, "schematic": string(canonical)}); err != nil {
		f.log.Warn("answer", "err", err)
	}
}

// getImage also answers HEAD: the standard library then omits the body and keeps the length.
func (f *Factory) getImage(w http.ResponseWriter, r *http.Request) {
	file := r.PathValue("file")
	content, err := f.image(r.PathValue("schematic"), r.PathValue("version"), file)
	if err != nil {
		var refused *refusal
		if !errors.As(err, &refused) {
			f.log.Warn("image", "file", file, "err", err)
			refused = errInternal
		}
		http.Error(w, refused.text, refused.status)
		return
	}
	name := cmp.Or(r.URL.Query().Get("filename"), file)
	h := w.Header()
	h.Set("Content-Type", "application/x-iso9660-image")
	h.Set("Content-Length", strconv.Itoa(len(content)))
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
	if _, err := w.Write(content); err != nil && r.Method != http.MethodHead {
		f.log.Warn("image", "file", file, "err", err)
	}
}

// refusal is an error with an HTTP status and the text of the public factory.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

// errInternal is the answer to every error that the factory does not expect.
var errInternal = &refusal{http.StatusInternalServerError, "internal server error"}

func (f *Factory) image(id, version, file string) ([]byte, error) {
	for _, suffix := range []string{".sha256", ".sha512"} {
		if strings.HasSuffix(file, suffix) {
			return nil, refuse(http.StatusPaymentRequired, "enterprise not enabled: checksum endpoint is not available")
		}
	}
	s, ok := f.Schematic(id)
	if !ok {
		return nil, refuse(http.StatusNotFound, "schematic ID %q not found", id)
	}
	if !validVersion(version) {
		return nil, errInternal
	}
	p, err := parsePath(file)
	if err != nil {
		return nil, err
	}
	names := s.Customization.SystemExtensions.OfficialExtensions
	tag, offered := tagOf(version)
	switch {
	case !offered && len(names) > 0:
		return nil, refuse(http.StatusNotFound, "error enhancing profile from schematic: error getting official extensions: version %s is not available", tag[1:])
	case !offered:
		return nil, refuse(http.StatusNotFound, "failed to get kernel: version %s is not available", tag[1:])
	}
	extensions, missing := resolve(names)
	if missing != "" {
		return nil, refuse(http.StatusBadRequest, "error enhancing profile from schematic: official extension %q is not available for Talos version %s", missing, tag)
	}
	if !p.knownPlatform() {
		return nil, errInternal
	}
	return build(payload{
		Version: tag, Schematic: id, Platform: p.platform, Arch: p.arch, Extensions: extensions, SecureBoot: p.secureBoot,
	})
}

// tagOf returns v with a leading v, and whether the factory offers it.
func tagOf(v string) (string, bool) {
	if !strings.HasPrefix(v, "v") {
		v = "v" + v
	}
	return v, slices.Contains(versions, v)
}

// validVersion tells whether v is a semantic version, with or without a leading v.
func validVersion(v string) bool {
	_, err := semver.StrictNewVersion(strings.TrimPrefix(v, "v"))
	return err == nil
}
