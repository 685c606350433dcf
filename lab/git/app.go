package git

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// AppKeyFile is the private key in an app's folder, RSA in PEM as GitHub makes it.
const AppKeyFile = "private-key.pem"

// Limits of GitHub: how far in the future a JSON web token of an app may end, and how long a token of an installation is valid.
const (
	longestJWT    = 10 * time.Minute
	tokenLifetime = time.Hour
	tokenUser     = "x-access-token"
)

// App is a GitHub App that is installed for the repository in an organization's account, and the part of GitHub's API that makes tokens of
// the installation. Its paths are those of api.github.com; GitHub Enterprise Server has them below /api/v3. Everything else that GitHub
// has is not modelled: permissions and repositories of an installation, users as owners, suspended installations, rate limits.
type App struct {
	ID           int
	Installation int
	Owner        string // of the installation
	Dir          string // its folder, with AppKeyFile

	key    *rsa.PublicKey
	mu     sync.Mutex
	tokens map[string]time.Time // until when each is valid
}

// Open reads the app's key, which it makes if there is none.
func (a *App) Open() error {
	path := filepath.Join(a.Dir, AppKeyFile)
	text, err := os.ReadFile(path) //nolint:gosec // a file of the lab
	if errors.Is(err, os.ErrNotExist) {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			return fmt.Errorf("lab GitHub App: %w", err)
		}
		text = pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
		if err := errors.Join(os.MkdirAll(a.Dir, 0o700), os.WriteFile(path, text, 0o600)); err != nil {
			return fmt.Errorf("lab GitHub App: %w", err)
		}
	} else if err != nil {
		return fmt.Errorf("lab GitHub App: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return fmt.Errorf("lab GitHub App: %s is not PEM; remove it", path)
	}
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		return fmt.Errorf("lab GitHub App: %s: %w; remove it", path, err)
	}
	a.key, a.tokens = &key.PublicKey, map[string]time.Time{}
	return nil
}

// Handler serves the API. Open comes first.
func (a *App) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /app/installations/{id}/access_tokens", a.asApp(a.makeToken))
	mux.HandleFunc("GET /orgs/{owner}/installation", a.asApp(a.find))
	mux.HandleFunc("/", a.asApp(func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusNotFound, "Not Found") }))
	return mux
}

func (a *App) makeToken(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("id") != strconv.Itoa(a.Installation) {
		refuse(w, http.StatusNotFound, "Not Found")
		return
	}
	token, until := "ghs_"+rand.Text(), time.Now().Add(tokenLifetime)
	a.mu.Lock()
	a.tokens[token] = until
	a.mu.Unlock()
	answer(w, http.StatusCreated, map[string]any{
		"token": token, "expires_at": until.UTC().Format(time.RFC3339), "repository_selection": "selected",
		"permissions": map[string]string{"contents": "read", "metadata": "read"},
	})
}

// find answers with the installation in an organization's account.
func (a *App) find(w http.ResponseWriter, r *http.Request) {
	if !strings.EqualFold(r.PathValue("owner"), a.Owner) {
		refuse(w, http.StatusNotFound, "Not Found")
		return
	}
	answer(w, http.StatusOK, map[string]any{
		"id": a.Installation, "app_id": a.ID, "target_type": "Organization", "account": map[string]any{"login": a.Owner, "type": "Organization"},
	})
}

// knows reports whether user and password are those with which a valid token is used for Git.
func (a *App) knows(user, password string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return user == tokenUser && time.Now().Before(a.tokens[password])
}

// asApp lets requests through that have a JSON web token which the app has signed.
func (a *App) asApp(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if status, message := a.judge(token, time.Now()); message != "" {
			refuse(w, status, message)
			return
		}
		next(w, r)
	}
}

// judge returns GitHub's error for a JSON web token, "" for a good one.
func (a *App) judge(token string, now time.Time) (status int, message string) {
	const undecoded = "A JSON web token could not be decoded"
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return http.StatusUnauthorized, undecoded
	}
	var header struct{ Alg string }
	var claims struct {
		Iss      any // a string or a number
		Iat, Exp int64
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || !decode(parts[0], &header) || !decode(parts[1], &claims) || header.Alg != "RS256" {
		return http.StatusUnauthorized, undecoded
	}
	if strings.TrimSpace(fmt.Sprint(claims.Iss)) != strconv.Itoa(a.ID) {
		return http.StatusNotFound, "Integration not found"
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(a.key, crypto.SHA256, sum[:], signature) != nil {
		return http.StatusUnauthorized, undecoded
	}
	switch issued, ends := time.Unix(claims.Iat, 0), time.Unix(claims.Exp, 0); {
	case !ends.After(now):
		return http.StatusUnauthorized,
			"'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires"
	case ends.After(now.Add(longestJWT)):
		return http.StatusUnauthorized, "'Expiration time' claim ('exp') is too far in the future"
	case issued.After(now):
		return http.StatusUnauthorized, "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"
	}
	return http.StatusOK, ""
}

// decode decodes a part of a JSON web token.
func decode(part string, into any) bool {
	text, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return false
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber() // an id is not a floating-point number
	return decoder.Decode(into) == nil
}

func refuse(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]string{
		"message": message, "documentation_url": "https://docs.github.com/rest", "status": strconv.Itoa(status),
	})
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}
