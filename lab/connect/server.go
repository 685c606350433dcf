package connect

import (
	"cmp"
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/slipway-platform/slipway/lab/fault"
)

// Version is the version of the simulated server.
const Version = "1.8.2"

// Server is a Connect server: the HTTP API of its two containers.
type Server struct {
	Account *Account
	Cluster string // name of the cluster in which it runs, the target of its faults
	Faults  *fault.Set

	initialised atomic.Bool // a request had a valid token
}

// object is JSON.
type object = map[string]any

// failure is an error of the API.
type failure struct {
	Status  int    `json:"status"`
	Message string `json:"message"`
}

func (f *failure) Error() string { return fmt.Sprintf("%d %s", f.Status, f.Message) }

func fail(status int, format string, args ...any) error {
	return &failure{status, fmt.Sprintf(format, args...)}
}

// Handler serves the API container's HTTP.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /heartbeat", heartbeat)
	mux.HandleFunc("GET /health", s.health("1Password Connect API"))
	for pattern, answer := range map[string]func(*http.Request, claims) (any, error){
		"GET /v1/vaults":                         s.listVaults,
		"GET /v1/vaults/{vault}":                 s.getVault,
		"GET /v1/vaults/{vault}/items":           s.listItems,
		"GET /v1/vaults/{vault}/items/{item}":    s.getItem,
		"POST /v1/vaults/{vault}/items":          s.createItem,
		"PUT /v1/vaults/{vault}/items/{item}":    s.replaceItem,
		"DELETE /v1/vaults/{vault}/items/{item}": s.deleteItem,
	} {
		mux.Handle(pattern, s.api(answer))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { reply(w, nil, fail(http.StatusNotFound, "Not Found")) })
	return mux
}

// SyncHandler serves the sync container's HTTP.
func (s *Server) SyncHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /heartbeat", heartbeat)
	mux.HandleFunc("GET /health", s.health("1Password Connect Sync"))
	return mux
}

func heartbeat(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, ".") }

// health answers like a server with credentials, which is healthy also before the first token unlocks the data.
func (s *Server) health(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		sync := "TOKEN_NEEDED"
		if s.initialised.Load() {
			sync = "ACTIVE"
		}
		reply(w, object{"name": name, "version": Version, "dependencies": []object{
			{"service": "sync", "status": sync},
			{"service": "sqlite", "status": "ACTIVE", "message": "Connected to /home/opuser/.op/data/1password.sqlite"},
		}}, nil)
	}
}

// api answers a request that needs a token.
func (s *Server) api(answer func(*http.Request, claims) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.slow(r.Context())
		if f := s.broken(); f != nil {
			reply(w, nil, f)
			return
		}
		token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !found {
			reply(w, nil, fail(http.StatusUnauthorized, "%v", errToken))
			return
		}
		c, err := s.Account.verify(token)
		if err != nil {
			reply(w, nil, fail(http.StatusUnauthorized, "%v", err))
			return
		}
		s.initialised.Store(true)
		value, err := answer(r, c)
		reply(w, value, err)
	})
}

func reply(w http.ResponseWriter, value any, err error) {
	w.Header().Set("1Password-Connect-Version", Version)
	if _, is := value.(noContent); is && err == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		f := &failure{http.StatusInternalServerError, err.Error()}
		_ = errors.As(err, &f)
		w.WriteHeader(f.Status)
		value = f
	}
	_ = json.NewEncoder(w).Encode(value)
}

var (
	validID = regexp.MustCompile(`^[\da-z]{26}$`)
	filter  = regexp.MustCompile(`^(title|name) eq "(.*)"$`)
)

// wanted returns the name that the request's filter asks for; "" without a filter.
func wanted(r *http.Request) (string, error) {
	text := r.URL.Query().Get("filter")
	if text == "" {
		return "", nil
	}
	m := filter.FindStringSubmatch(text)
	if m == nil {
		return "", fail(http.StatusBadRequest, "Invalid filter")
	}
	return m[2], nil
}

func (s *Server) listVaults(r *http.Request, c claims) (any, error) {
	name, err := wanted(r)
	if err != nil {
		return nil, err
	}
	vaults, err := s.Account.Vaults()
	list := []object{}
	for _, v := range vaults {
		if c.mayRead(v.id()) && (name == "" || name == v.Name) {
			list = append(list, v.object())
		}
	}
	return list, err
}

// vault returns the vault of a request.
func (s *Server) vault(r *http.Request, c claims) (Vault, error) {
	id := r.PathValue("vault")
	if !validID.MatchString(id) {
		return Vault{}, fail(http.StatusBadRequest, "Invalid Vault UUID")
	}
	if !c.mayRead(id) {
		return Vault{}, fail(http.StatusForbidden, "Authorization: token does not have access to vault %s", id)
	}
	vaults, err := s.Account.Vaults()
	if err != nil {
		return Vault{}, err
	}
	for _, v := range vaults {
		if v.id() == id {
			return v, nil
		}
	}
	return Vault{}, fail(http.StatusNotFound, "vault %s not found", id)
}

func (s *Server) getVault(r *http.Request, c claims) (any, error) {
	v, err := s.vault(r, c)
	return v.object(), err
}

func (s *Server) listItems(r *http.Request, c claims) (any, error) {
	v, err := s.vault(r, c)
	if err != nil {
		return nil, err
	}
	title, err := wanted(r)
	list := []object{}
	for _, i := range v.Items {
		if title == "" || title == i.Title {
			list = append(list, v.summary(i))
		}
	}
	return list, err
}

// item returns the item of a request and its vault.
func (s *Server) item(r *http.Request, c claims) (Vault, Item, error) {
	v, err := s.vault(r, c)
	if err != nil {
		return v, Item{}, err
	}
	id := r.PathValue("item")
	if !validID.MatchString(id) {
		return v, Item{}, fail(http.StatusBadRequest, "Invalid Item UUID")
	}
	for _, i := range v.Items {
		if v.itemID(i) == id {
			return v, i, nil
		}
	}
	return v, Item{}, fail(http.StatusNotFound, "item %s not found", id)
}

func (s *Server) getItem(r *http.Request, c claims) (any, error) {
	v, i, err := s.item(r, c)
	if err != nil {
		return nil, err
	}
	return v.full(i), nil
}

// full is an item with its fields.
func (v Vault) full(i Item) object {
	full := v.summary(i)
	fields := []object{}
	for _, label := range slices.Sorted(maps.Keys(i.Fields)) {
		field := object{"id": ID("field", v.itemID(i), label), "type": "CONCEALED", "label": label, "value": i.Fields[label]}
		if label == "username" || label == "password" {
			field["id"], field["purpose"] = label, strings.ToUpper(label)
		}
		if label == "username" {
			field["type"] = "STRING"
		}
		fields = append(fields, field)
	}
	full["fields"] = fields
	return full
}

func (v Vault) id() string { return cmp.Or(v.ID, ID("vault", v.Name)) }

func (v Vault) itemID(i Item) string { return cmp.Or(i.ID, ID("item", v.Name, i.Title)) }

// created is the time at which everything was created.
const created = "2026-01-01T00:00:00Z"

func (v Vault) object() object {
	return object{"id": v.id(), "name": v.Name, "attributeVersion": 1, "contentVersion": 1, "items": len(v.Items), "type": "USER_CREATED",
		"createdAt": created, "updatedAt": created}
}

// summary is an item as a list of items shows it.
func (v Vault) summary(i Item) object {
	o := object{"id": v.itemID(i), "title": i.Title, "version": max(i.Version, 1), "vault": object{"id": v.id(), "name": v.Name},
		"category": cmp.Or(i.Category, "LOGIN"), "createdAt": created, "updatedAt": created}
	if len(i.Tags) > 0 {
		o["tags"] = i.Tags
	}
	return o
}

// verifySignature checks a signature in the form of JSON Web Signatures: r and s, 32 bytes each.
func verifySignature(key *ecdsa.PublicKey, sum, signature []byte) bool {
	r, s := new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])
	return ecdsa.Verify(key, sum, r, s)
}
