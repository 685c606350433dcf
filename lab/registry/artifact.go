package registry

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	oci "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/slipway-platform/slipway/lab/git"
)

// Media types of an artifact of Flux, as `flux push artifact` sets them.
const (
	fluxConfig  types.MediaType = "application/vnd.cncf.flux.config.v1+json"
	fluxContent types.MediaType = "application/vnd.cncf.flux.content.v1.tar+gzip"
)

// PublicRepository is the repository that needs no login.
const PublicRepository = "public/slipway"

// Artifacts is a registry that asks for a login, by HTTP's basic authentication. Its artifact is made of the files of a Git commit, as
// `flux push artifact` makes it of a working tree, whenever a client asks for a tag. Digests are those of the content, so a commit that
// changes no file has another manifest with the same layer. Not modelled: tokens, pushing by clients, deletion, signatures.
type Artifacts struct {
	Repository string   // such as "platform/slipway"
	Tags       []string // all are of the newest commit
	Username   string
	Password   string
	Public     bool   // Repository needs no login, either
	Origin     string // URL of the Git repository, for the annotations
	Snapshot   func(context.Context) (*git.Snapshot, error)
	Log        *slog.Logger

	mu     sync.Mutex
	commit string // that is pushed
}

// Handler returns the HTTP handler.
func (a *Artifacts) Handler() http.Handler {
	inner := oci.New(oci.Logger(log.New(io.Discard, "", 0)))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		public := strings.HasPrefix(r.URL.Path, "/v2/"+PublicRepository+"/") || a.Public && strings.HasPrefix(r.URL.Path, "/v2/"+a.Repository+"/")
		switch {
		case !public && !a.knows(r):
			w.Header().Set("WWW-Authenticate", `Basic realm="lab registry"`)
			refuse(w, http.StatusUnauthorized, "UNAUTHORIZED", "authentication required")
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			refuse(w, http.StatusForbidden, "DENIED", "requested access to the resource is denied")
		default:
			if strings.Contains(r.URL.Path, "/manifests/") {
				if err := a.update(r.Context(), inner); err != nil {
					a.Log.Error("OCI artifact", "err", err)
					refuse(w, http.StatusInternalServerError, "UNKNOWN", err.Error())
					return
				}
			}
			inner.ServeHTTP(w, r)
		}
	})
}

// refuse answers with an error in the form of the distribution specification.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Docker-Distribution-API-Version", "registry/2.0")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]string{"code": code, "message": message}}})
}

func (a *Artifacts) knows(r *http.Request) bool {
	user, password, ok := r.BasicAuth()
	return ok && subtle.ConstantTimeCompare([]byte(user+"\x00"+password), []byte(a.Username+"\x00"+a.Password)) == 1
}

// update pushes the artifact of the newest commit.
func (a *Artifacts) update(ctx context.Context, to http.Handler) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	newest, err := a.Snapshot(ctx)
	if err != nil || newest.Commit == a.commit {
		return err
	}
	layer, unpacked, err := archive(newest.Files)
	if err != nil {
		return err
	}
	config, err := json.Marshal(v1.ConfigFile{RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{unpacked}}})
	if err != nil {
		return err
	}
	annotations := map[string]string{
		"org.opencontainers.image.created":  newest.Time.UTC().Format(time.RFC3339),
		"org.opencontainers.image.source":   a.Origin,
		"org.opencontainers.image.revision": "HEAD@sha1:" + newest.Commit,
	}
	for _, repository := range slices.Compact([]string{a.Repository, PublicRepository}) {
		if err := upload(to, repository, a.Tags, blob{fluxConfig, config}, blob{fluxContent, layer}, annotations); err != nil {
			return err
		}
	}
	a.commit = newest.Commit
	return nil
}

// archive packs files into a tar archive that is compressed, and returns the digest of the uncompressed one, too. Times are left out, so
// that the same files have the same digest.
func archive(files []git.File) (packed []byte, unpacked v1.Hash, err error) {
	var plain, compressed bytes.Buffer
	writer := tar.NewWriter(&plain)
	for _, file := range files {
		mode := int64(0o644)
		if file.Executable {
			mode = 0o755
		}
		header := tar.Header{Typeflag: tar.TypeReg, Name: file.Path, Mode: mode, Size: int64(len(file.Content))}
		if err := writer.WriteHeader(&header); err != nil {
			return nil, v1.Hash{}, fmt.Errorf("archive: %s: %w", file.Path, err)
		}
		if _, err := writer.Write(file.Content); err != nil {
			return nil, v1.Hash{}, fmt.Errorf("archive: %s: %w", file.Path, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, v1.Hash{}, fmt.Errorf("archive: %w", err)
	}
	unpacked = digest(plain.Bytes())
	zip := gzip.NewWriter(&compressed)
	if _, err := plain.WriteTo(zip); err != nil {
		return nil, v1.Hash{}, fmt.Errorf("archive: %w", err)
	}
	if err := zip.Close(); err != nil {
		return nil, v1.Hash{}, fmt.Errorf("archive: %w", err)
	}
	return compressed.Bytes(), unpacked, nil
}
