package syntax

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRegistryLogin_TakesEveryFormThatHasThePassword(t *testing.T) {
	for _, text := range []string{
		`{"auths": {"registry.example.com": {"username": "a", "password": "hunter2"}}}`,
		`{"auths": {"registry.example.com": {"auth": "YTpodW50ZXIy"}}, "credsStore": "desktop"}`,
		`{"auths": {"https://registry.example.com/v2/": {"auth": "YTpodW50ZXIy"}}}`,
		`{"auths": {"registry.example.com/team": {"auth": "YTpodW50ZXIy"}, "ghcr.io": {}}}`,
		`{"auths": {"*.example.com": {"auth": "YTpodW50ZXIy"}}}`,
	} {
		assert.Nil(t, RegistryLogin(text, "registry.example.com"), text)
	}
	assert.Nil(t, RegistryLogin(`{"auths": {"https://index.docker.io/v1/": {"auth": "YTpodW50ZXIy"}}}`, "docker.io"))
}

func TestRegistryLogin_SaysWhatIsWrongAndNeverQuotesIt(t *testing.T) {
	const (
		store     = "has no password for registry.example.com: docker login put it into a store of its machine"
		notBase64 = `has for registry.example.com an "auth" that is not the base64 of USER:PASSWORD`
	)
	good := `{"auths": {"registry.example.com": {"auth": "YTpodW50ZXIy"}}}`
	for text, want := range map[string]string{
		"hunter2": "is not JSON in the form of Docker's config.json",
		base64.StdEncoding.EncodeToString([]byte(good)): "is in base64 as a whole",
		`{}`: "has no logins",
		`{"registry.example.com": {"auth": "YTpodW50ZXIy"}}`:                         "has no logins",
		`{"auths": {"registry.example.com": {}}, "credsStore": "desktop"}`:           store,
		`{"credHelpers": {"registry.example.com": "ecr-login"}}`:                     store,
		`{"auths": {"registry.example.com": {"auth": "hunter2"}}}`:                   notBase64,
		`{"auths": {"registry.example.com:5000": {"auth": "YTpodW50ZXIy"}}}`:         "has no login for registry.example.com",
		`{"auths": {"registry.example.com.evil.example": {"auth": "YTpodW50ZXIy"}}}`: "has no login for registry.example.com",
	} {
		fault := RegistryLogin(text, "registry.example.com")
		if assert.NotNil(t, fault, text) {
			assert.Equal(t, want, fault.Problem)
			assert.NotContains(t, fault.Problem+fault.Remedy, "hunter2")
		}
	}
}

func TestBucketKey_HasNoSpaceOrLineBreak(t *testing.T) {
	assert.Nil(t, BucketKey("GK3515373e4c851ebaad366558"))
	for _, text := range []string{"key\n", " key", "a b", "\t"} {
		assert.NotNil(t, BucketKey(text), text)
	}
}
