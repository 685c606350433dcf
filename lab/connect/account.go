// Package connect simulates 1Password Connect: the account at 1Password that a Connect server synchronises from, and the
// REST API of the server. Package workload starts a server when the pods of a Connect Deployment run.
//
// Credentials and tokens have the real forms. The server accepts only its own account's: credentials of version 2, and tokens that the
// account has signed, that have not expired, and that name the vault. Vaults and items are those of a file, which is read again for each
// request. Not modelled: 1Password's encryption, sections and types of fields, files, changes of parts of an item, activity, metrics, TLS,
// and a synchronisation that takes time.
package connect

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/yaml"
)

// Names of the files in an account's folder.
const (
	CredentialsFile = "1password-credentials.json" // what 1Password offers for download when a Connect server is created
	TokenFile       = "token"                      // an access token that reads and writes all vaults
	VaultsFile      = "vaults.yaml"                // vaults and items; a person or a test may change it at any time
	keyFile         = "account.key"
)

// tokenLifetime is the lifetime of the token in TokenFile.
const tokenLifetime = 90 * 24 * time.Hour

// vaultsComment is the first part of VaultsFile.
const vaultsComment = `# The vaults of the simulated 1Password account, which 1Password Connect serves. Changes have an effect at once.
# A field is NAME: VALUE, concealed as a password is.
`

// Account is a simulated account at 1Password with one Connect server.
type Account struct {
	dir string
	key *ecdsa.PrivateKey

	writing sync.Mutex // held while VaultsFile is changed
}

// Vault is a vault of the account.
type Vault struct {
	Name  string `json:"name"`
	ID    string `json:"id,omitempty"` // "" means one that follows from the name
	Items []Item `json:"items"`
}

// Item is an item of a vault.
type Item struct {
	Title string `json:"title"`
	ID    string `json:"id,omitempty"` // "" means one that follows from the names
	// Category is that of an item which a client has made; "" is LOGIN.
	Category string `json:"category,omitempty"`
	// Version counts the writes of clients; 0 is 1.
	Version int `json:"version,omitempty"`

	Tags   []string          `json:"tags,omitempty"`
	Fields map[string]string `json:"fields,omitempty"` // values by label
}

// OpenAccount opens the account whose files are in dir. It creates a new one if there is none.
func OpenAccount(dir string) (*Account, error) {
	a := &Account{dir: dir}
	text, err := os.ReadFile(filepath.Join(dir, keyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return a, a.create()
	}
	if err == nil {
		a.key, err = x509.ParseECPrivateKey(text)
	}
	if err != nil {
		return nil, fmt.Errorf("1Password account: %w", err)
	}
	return a, nil
}

// create makes the account's key and writes its files.
func (a *Account) create() error {
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return err
	}
	key, err := x509.MarshalECPrivateKey(a.key)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return fmt.Errorf("1Password account: %w", err)
	}
	token, err := a.WriteToken(time.Now().Add(tokenLifetime), "*")
	if err != nil {
		return err
	}
	for _, file := range []struct {
		name    string
		content []byte
	}{{VaultsFile, []byte(vaultsComment)}, {CredentialsFile, a.Credentials()}, {TokenFile, []byte(token)}, {keyFile, key}} {
		if err := os.WriteFile(filepath.Join(a.dir, file.name), file.content, 0o600); err != nil {
			return fmt.Errorf("1Password account: %w", err)
		}
	}
	return nil
}

// Vaults returns the account's vaults.
func (a *Account) Vaults() ([]Vault, error) {
	text, err := os.ReadFile(filepath.Join(a.dir, VaultsFile))
	if err != nil {
		return nil, fmt.Errorf("1Password account: %w", err)
	}
	var content vaultsFile
	if err := yaml.UnmarshalStrict(text, &content); err != nil {
		return nil, fmt.Errorf("1Password account: %s: %w", VaultsFile, err)
	}
	return content.Vaults, nil
}

// vaultsFile is the form of VaultsFile.
type vaultsFile struct {
	Vaults []Vault `json:"vaults"`
}

// Require adds an item with fields to a vault, each given by its name or id. It makes the vault, too. A vault or an item that exists stays as
// it is.
func (a *Account) Require(vault, item string, fields map[string]string) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	vaults, err := a.Vaults()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(vaults, func(v Vault) bool { return v.Name == vault || v.id() == vault })
	if at < 0 {
		added := Vault{Name: vault}
		if validID.MatchString(vault) {
			added.ID = vault
		}
		at, vaults = len(vaults), append(vaults, added)
	}
	in := &vaults[at]
	if slices.ContainsFunc(in.Items, func(i Item) bool { return i.Title == item || in.itemID(i) == item }) {
		return nil
	}
	added := Item{Title: item, Fields: fields}
	if validID.MatchString(item) {
		added.ID = item
	}
	in.Items = append(in.Items, added)
	return a.save(vaults)
}

// credentials is the form of the credentials file, version 2.
type credentials struct {
	Verifier struct {
		Salt      string `json:"salt"`
		LocalHash string `json:"localHash"`
	} `json:"verifier"`
	EncCredentials struct {
		KID  string `json:"kid"`
		Enc  string `json:"enc"`
		CTY  string `json:"cty"`
		IV   string `json:"iv"`
		Data string `json:"data"`
	} `json:"encCredentials"`
	Version    string         `json:"version"`
	DeviceUUID string         `json:"deviceUuid"`
	UniqueKey  map[string]any `json:"uniqueKey"`
}

// Credentials returns the content of the Connect server's credentials file. It is the same at each call.
func (a *Account) Credentials() []byte {
	var c credentials
	c.Verifier.Salt, c.Verifier.LocalHash = a.derive("salt", 16), a.derive("hash", 32)
	c.EncCredentials.KID, c.EncCredentials.Enc, c.EncCredentials.CTY = "localauthv2keykid", "A256GCM", "b5+jwk+json"
	c.EncCredentials.IV, c.EncCredentials.Data = a.derive("iv", 12), a.derive("data", 32)
	c.Version, c.DeviceUUID = "2", ID("device", a.derive("device", 32))
	c.UniqueKey = map[string]any{"alg": "A256GCM", "ext": true, "k": a.derive("key", 32), "key_ops": []string{"encrypt", "decrypt"},
		"kty": "oct", "kid": ID("key", a.derive("kid", 32))}
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings only
	}
	return text
}

// derive returns n bytes that depend on the account's key, as text.
func (a *Account) derive(what string, n int) string {
	sum := sha256.Sum256(append(a.key.D.Bytes(), what...))
	return base64.RawURLEncoding.EncodeToString(sum[:n])
}

// CheckCredentials checks the content of a credentials file as a Connect server does at its start. The errors are the ends of
// the real server's messages.
func (a *Account) CheckCredentials(content []byte) error {
	var got, own credentials
	if err := json.Unmarshal(content, &got); err != nil {
		return fmt.Errorf("Wrapped: (failed to FindCredentialsUniqueKey), Wrapped: (failed to loadCredentialsFile), Wrapped: (LoadLocalAuthV2 failed to Unmarshal), %w", err) //nolint:staticcheck // the real text
	}
	if got.Version != "2" {
		return errors.New("Wrapped: (failed to FindCredentialsUniqueKey), Wrapped: (failed to loadCredentialsFile), credentials file is not version 2") //nolint:staticcheck // the real text
	}
	if err := json.Unmarshal(a.Credentials(), &own); err != nil {
		return err
	}
	if got.EncCredentials != own.EncCredentials || got.Verifier != own.Verifier || got.UniqueKey["k"] != own.UniqueKey["k"] {
		return errors.New("Wrapped: (failed to FindCredentials), failed to Decrypt localAuthv2: Authentication failed, invalid bearer token") //nolint:staticcheck // the real text
	}
	return nil
}

// LoadCredentials reads credentials from the value of the environment variable OP_SESSION that is not a path: the content of
// the file in base64.
func LoadCredentials(session string) ([]byte, error) {
	content, err := base64.StdEncoding.DecodeString(session)
	if err != nil {
		if content, err = base64.RawURLEncoding.DecodeString(session); err != nil {
			return nil, fmt.Errorf("Wrapped: (failed to FindCredentialsUniqueKey), Wrapped: (failed to loadCredentialsFile), Wrapped: (LoadLocalAuthV2 failed to credentialsDataFromBase64), %w", err) //nolint:staticcheck // the real text
		}
	}
	return content, nil
}

// claims are the claims of an access token that the server looks at, and some more of a real token.
type claims struct {
	Account  string   `json:"1password.com/auuid"`
	Token    string   `json:"1password.com/token"`
	Features []string `json:"1password.com/fts"`
	Vaults   []grant  `json:"1password.com/vts"`
	Audience []string `json:"aud"`
	Subject  string   `json:"sub"`
	Expires  int64    `json:"exp,omitempty"`
	IssuedAt int64    `json:"iat"`
	Issuer   string   `json:"iss"`
	ID       string   `json:"jti"`
}

// grant is the access of a token to a vault. The id "*" stands for all vaults, also later ones; a real token names each.
type grant struct {
	Vault  string `json:"u"`
	Access int    `json:"a"`
}

// readAccess is the access of a token that reads, writeAccess of a token that writes, too.
const readAccess, writeAccess = 48, 64

// Token returns an access token that reads the vaults with these names. The zero time means that it never expires.
func (a *Account) Token(expires time.Time, vaults ...string) (string, error) {
	return a.token(expires, readAccess, vaults)
}

// WriteToken is like Token, and the token writes, too.
func (a *Account) WriteToken(expires time.Time, vaults ...string) (string, error) {
	return a.token(expires, readAccess|writeAccess, vaults)
}

func (a *Account) token(expires time.Time, access int, vaults []string) (string, error) {
	c := claims{Account: strings.ToUpper(ID("account", a.derive("account", 32))), Token: a.derive("token", 24), Features: []string{"vaultaccess"},
		Audience: []string{"com.1password.connect"}, Subject: strings.ToUpper(ID("subject", a.derive("subject", 32))),
		IssuedAt: time.Now().Unix(), Issuer: "com.1password.b5", ID: rand.Text()}
	if !expires.IsZero() {
		c.Expires = expires.Unix()
	}
	for _, name := range vaults {
		id := name
		if name != "*" {
			id = ID("vault", name)
		}
		c.Vaults = append(c.Vaults, grant{id, access})
	}
	payload, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"ES256","kid":"`+ID("signer", a.derive("signer", 32))+`","typ":"JWT"}`)) + "." + encode(payload)
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, a.key, sum[:])
	if err != nil {
		return "", err
	}
	return signed + "." + encode(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)), nil
}

// Errors about tokens, in the words of the server.
var (
	errToken     = errors.New("Invalid bearer token")    //nolint:staticcheck // the real text
	errSignature = errors.New("Invalid token signature") //nolint:staticcheck // the real text
)

// verify reads a token.
func (a *Account) verify(token string) (claims, error) {
	var c claims
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, errToken
	}
	payload, err1 := base64.RawURLEncoding.DecodeString(parts[1])
	signature, err2 := base64.RawURLEncoding.DecodeString(parts[2])
	if err1 != nil || err2 != nil || len(signature) != 64 || json.Unmarshal(payload, &c) != nil {
		return c, errToken
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if !verifySignature(&a.key.PublicKey, sum[:], signature) {
		return c, errSignature
	}
	if c.Expires != 0 && time.Now().Unix() >= c.Expires {
		return c, errToken
	}
	return c, nil
}

// mayRead tells whether a token gives access to the vault with this id.
func (c claims) mayRead(vault string) bool {
	return slices.ContainsFunc(c.Vaults, func(g grant) bool { return g.Vault == vault || g.Vault == "*" })
}

// mayWrite tells whether a token may write to the vault with this id.
func (c claims) mayWrite(vault string) bool {
	return slices.ContainsFunc(c.Vaults, func(g grant) bool { return (g.Vault == vault || g.Vault == "*") && g.Access&writeAccess != 0 })
}

// ID returns an id in the form of 1Password's: 26 lower-case letters and digits. It depends on the names only: a vault or an item keeps its
// id.
func ID(names ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(names, "\x00")))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))[:26]
}
