package ceph

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
)

// KeyType is the type of a user's key. "" leaves the choice to Ceph.
type KeyType string

// The types. Kernels before 7.0, as those of Talos 1.12 to 1.14, know the first one only.
const (
	AES     KeyType = "aes"
	AES256K KeyType = "aes256k"
)

// ErrKeyType is the error of a kernel that does not know the type of a key.
var ErrKeyType = errors.New("the kernel does not know keys of type aes256k")

// Version is a release of Ceph.
type Version [3]int

// ParseVersion reads the release in the tag of an image, such as v19.2.7 or v19.2.7-20261008. A text without one is the oldest release.
func ParseVersion(tag string) (v Version) {
	_, _ = fmt.Sscanf(strings.TrimPrefix(tag, "v"), "%d.%d.%d", &v[0], &v[1], &v[2])
	return v
}

// AtLeast tells whether a release is of the same major and minor release as another one, and not older.
func (v Version) AtLeast(other Version) bool {
	return v[0] == other[0] && v[1] == other[1] && v[2] >= other[2]
}

// knowsAES256K tells whether the release makes keys of type aes256k unless it is told otherwise, and warns of others.
func (v Version) knowsAES256K() bool {
	return v[0] > 20 || v.AtLeast(Version{19, 2, 6}) || v.AtLeast(Version{20, 2, 4})
}

// usual is the type of keys that the release makes by itself.
func (v Version) usual() KeyType {
	if v.knowsAES256K() {
		return AES256K
	}
	return AES
}

// SetVersion is the upgrade of all daemons to a release.
func (c *Cluster) SetVersion(v Version) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	c.version = v
}

// RotateDaemonKeys gives the daemons and client.admin new keys, of the release's default type, once for each generation.
func (c *Cluster) RotateDaemonKeys(generation int64) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	if generation > c.keyGeneration && c.version.knowsAES256K() {
		c.keyGeneration, c.daemonKeys = generation, c.version.usual()
		admin := c.users[Admin]
		admin.Type, admin.Key = c.daemonKeys, newKey(c.daemonKeys)
		c.users[Admin] = admin
	}
}

// KeyGeneration returns the generation of the daemons' keys.
func (c *Cluster) KeyGeneration() int64 {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	return c.keyGeneration
}

// Mute hides a check from the cluster's health, or shows it again.
func (c *Cluster) Mute(code string, muted bool) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	c.muted[code] = muted
}

// serviceKeys is the code of the only check here that is an error and no warning.
const serviceKeys = "AUTH_INSECURE_SERVICE_KEY_TYPE"

// Severity is that of a check.
func Severity(code string) string {
	if code == serviceKeys {
		return "HEALTH_ERR"
	}
	return "HEALTH_WARN"
}

// keyChecks are the checks about the types of keys, by code.
func (c *Cluster) keyChecks() map[string]string {
	checks := map[string]string{}
	if !c.version.knowsAES256K() {
		return checks
	}
	if c.daemonKeys == AES {
		checks[serviceKeys] = "daemons have keys of an insecure type"
	}
	clients := 0
	for name, user := range c.users {
		if user.Type == AES && strings.HasPrefix(name, "client.") {
			clients++
		}
	}
	if clients > 0 {
		checks["AUTH_INSECURE_CLIENT_KEY_TYPE"] = fmt.Sprintf("%d clients have keys of an insecure type", clients)
	}
	checks["AUTH_INSECURE_KEYS_ALLOWED"] = "keys of insecure types are allowed"
	checks["AUTH_INSECURE_KEYS_CREATABLE"] = "keys of insecure types can be created"
	return checks
}

// newKey returns a new key in the form of cephx: type, time, length and the key's bytes, in base64.
func newKey(of KeyType) string {
	kind, length := uint16(1), 16
	if of == AES256K {
		kind, length = 2, 32
	}
	b := make([]byte, 12+length)
	now := time.Now()
	binary.LittleEndian.PutUint16(b[0:], kind)
	binary.LittleEndian.PutUint32(b[2:], uint32(now.Unix()))
	binary.LittleEndian.PutUint32(b[6:], uint32(now.Nanosecond()))
	binary.LittleEndian.PutUint16(b[10:], uint16(length))
	_, _ = rand.Read(b[12:]) // never fails
	return base64.StdEncoding.EncodeToString(b)
}
