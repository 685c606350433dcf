// Package git is the lab's Git host: smart HTTP with authentication, by git's own http-backend, SSH, and a GitHub App. It serves the
// committed state of the checkout that the lab was started from, and fetches it again whenever a client asks for references.
// Nothing can be pushed.
package git

import (
	"context"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/cgi"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/slipway-platform/slipway/lab/fault"
)

// PublicPath is the path below which the repository can be read without credentials, too: /public/platform/slipway.git.
const PublicPath = "/public"

// Server serves one repository.
type Server struct {
	Checkout string   // working tree whose HEAD is served
	Dir      string   // bare repository of the lab, created at the first request
	Path     string   // URL path of the repository, e.g. "/platform/slipway.git"
	Branches []string // branches; all point to HEAD
	Username string
	Password string
	Public   bool // the repository can be read without credentials, or with any
	App      *App // whose tokens are accepted, too; nil means none
	Faults   *fault.Set
	Log      *slog.Logger

	mu      sync.Mutex
	created bool
	base    string   // HEAD of the checkout that moved is on top of
	moved   []string // commits of the fault git-moves, oldest first
	newest  *Snapshot
}

// Handler returns the HTTP handler. git must be installed.
func (s *Server) Handler(ctx context.Context) (http.Handler, error) {
	out, err := exec.CommandContext(ctx, "git", "--exec-path").Output()
	if err != nil {
		return nil, fmt.Errorf("lab git: git --exec-path: %w; install git", err)
	}
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"),
		Root: s.Path,
		Dir:  s.Dir,
		Env: []string{
			"GIT_PROJECT_ROOT=" + s.Dir, "GIT_HTTP_EXPORT_ALL=1",
			"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
		},
	}
	mux := http.NewServeMux()
	mux.Handle("/", s.repository(backend, s.Public))
	mux.Handle(PublicPath+s.Path+"/", http.StripPrefix(PublicPath, s.repository(backend, true)))
	return mux, nil
}

// repository answers requests for the repository at its path.
func (s *Server) repository(backend http.Handler, public bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		code, words, broken := s.broken()
		switch {
		case broken:
			http.Error(w, words, code)
		case r.URL.Path != s.Path && !strings.HasPrefix(r.URL.Path, s.Path+"/"):
			http.Error(w, "repository not found", http.StatusNotFound)
		case !s.allowed(r, public):
			w.Header().Set("WWW-Authenticate", `Basic realm="lab"`)
			http.Error(w, "HTTP Basic: Access denied", http.StatusUnauthorized)
		default:
			if strings.HasSuffix(r.URL.Path, "/info/refs") {
				if err := s.update(r.Context()); err != nil {
					s.Log.Error("git update", "err", err)
					http.Error(w, err.Error(), http.StatusInternalServerError)
					return
				}
			}
			r.Header.Del("Authorization") // the backend would have it in its environment
			backend.ServeHTTP(w, r)
		}
	}
}

func (s *Server) allowed(r *http.Request, public bool) bool {
	if s.refused() {
		return false
	}
	if public {
		return true
	}
	user, password, ok := r.BasicAuth()
	if ok && s.App != nil && s.App.knows(user, password) {
		return true
	}
	same := subtle.ConstantTimeCompare([]byte(user+"\x00"+password), []byte(s.Username+"\x00"+s.Password))
	return ok && same == 1
}

// update fetches the checkout's HEAD into the bare repository.
func (s *Server) update(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.updateLocked(ctx)
	return err
}

// updateLocked is update, and returns the commit that the branches point to.
func (s *Server) updateLocked(ctx context.Context) (string, error) {
	if !s.created {
		if _, err := git(ctx, "init", "--quiet", "--bare", s.Dir); err != nil {
			return "", err
		}
		s.created = true
	}
	const head = "refs/lab/head"
	if _, err := s.git(ctx, "fetch", "--quiet", "--no-tags", "--update-shallow", s.Checkout, "+HEAD:"+head); err != nil {
		return "", err
	}
	tip, err := s.git(ctx, "rev-parse", head)
	if err != nil {
		return "", err
	}
	if tip, err = s.move(ctx, tip); err != nil {
		return "", err
	}
	for _, branch := range s.Branches {
		if _, err := s.git(ctx, "update-ref", "refs/heads/"+branch, tip); err != nil {
			return "", err
		}
	}
	return tip, nil
}

// move returns the newest commit of the fault git-moves on top of the checkout's HEAD, or HEAD while the fault is off.
func (s *Server) move(ctx context.Context, head string) (string, error) {
	count := s.moves()
	if s.base != head || count == 0 {
		s.base, s.moved = head, nil
	}
	tip := head
	for i := range count {
		if i == len(s.moved) {
			commit, err := s.git(ctx, "-c", "user.name=lab", "-c", "user.email=lab@localhost",
				"commit-tree", "-p", tip, "-m", fmt.Sprintf("Move %d", i+1), head+"^{tree}")
			if err != nil {
				return "", err
			}
			s.moved = append(s.moved, commit)
		}
		tip = s.moved[i]
	}
	return tip, nil
}

// git runs git in the lab's repository and returns what it printed.
func (s *Server) git(ctx context.Context, args ...string) (string, error) {
	return git(ctx, append([]string{"-C", s.Dir}, args...)...)
}

func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=*"}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[len(args)-1], err, strings.TrimSpace(string(out)))
	}
	return strings.TrimSpace(string(out)), nil
}
