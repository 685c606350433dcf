package connect

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

// itemBody is an item in a request, as far as the lab keeps it. Sections, notes, purposes and the types of fields are not modelled.
type itemBody struct {
	ID       string      `json:"id"`
	Title    string      `json:"title"`
	Category string      `json:"category"`
	Tags     []string    `json:"tags"`
	Fields   []itemField `json:"fields"`
}

type itemField struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	Value string `json:"value"`
}

// mayWrite returns the vault of a request that writes.
func (s *Server) mayWrite(r *http.Request, c claims) (Vault, error) {
	v, err := s.vault(r, c)
	if err == nil && !c.mayWrite(v.id()) {
		err = fail(http.StatusUnauthorized, "Unauthorized Request, token does not have write access to the Vault")
	}
	return v, err
}

func readBody(r *http.Request, into any) error {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		return fail(http.StatusBadRequest, "Invalid request body: %v", err)
	}
	return nil
}

// fields returns the values by label. The file of the account has one field of a label.
func (b itemBody) fields() (map[string]string, error) {
	fields := map[string]string{}
	for _, field := range b.Fields {
		if _, twice := fields[field.Label]; twice {
			return nil, fail(http.StatusNotImplemented, "the lab models one field of a label: %s", field.Label)
		}
		fields[field.Label] = field.Value
	}
	return fields, nil
}

// createItem makes an item. Several items may have the same title.
func (s *Server) createItem(r *http.Request, c claims) (any, error) {
	v, err := s.mayWrite(r, c)
	if err != nil {
		return nil, err
	}
	var body itemBody
	if err := readBody(r, &body); err != nil {
		return nil, err
	}
	if body.Category == "" {
		return nil, fail(http.StatusBadRequest, "Invalid item category")
	}
	fields, err := body.fields()
	if err != nil {
		return nil, err
	}
	made := Item{Title: body.Title, ID: ID("item", v.Name, rand.Text()), Category: body.Category, Tags: body.Tags, Fields: fields}
	err = s.Account.change(v, func(items []Item) ([]Item, error) { return append(items, made), nil })
	return v.full(made), err
}

// replaceItem replaces an item. Changing parts of one is not modelled.
func (s *Server) replaceItem(r *http.Request, c claims) (any, error) {
	return s.changeItem(r, c, func(item *Item) error {
		var body itemBody
		if err := readBody(r, &body); err != nil {
			return err
		}
		if body.ID != r.PathValue("item") {
			return fail(http.StatusBadRequest, "Item UUID in the request body does not match the one in the path")
		}
		fields, err := body.fields()
		item.Title, item.Tags, item.Fields, item.Version = body.Title, body.Tags, fields, max(item.Version, 1)+1
		return err
	})
}

func (s *Server) deleteItem(r *http.Request, c claims) (any, error) {
	if _, err := s.mayWrite(r, c); err != nil {
		return nil, err
	}
	v, item, err := s.item(r, c)
	if err != nil {
		return nil, err
	}
	return noContent{}, s.Account.change(v, func(items []Item) ([]Item, error) {
		return slices.DeleteFunc(items, func(i Item) bool { return v.itemID(i) == v.itemID(item) }), nil
	})
}

// changeItem changes the item of a request.
func (s *Server) changeItem(r *http.Request, c claims, change func(*Item) error) (any, error) {
	v, err := s.mayWrite(r, c)
	if err != nil {
		return nil, err
	}
	_, item, err := s.item(r, c)
	if err != nil {
		return nil, err
	}
	id := v.itemID(item)
	err = s.Account.change(v, func(items []Item) ([]Item, error) {
		at := slices.IndexFunc(items, func(i Item) bool { return v.itemID(i) == id })
		if at < 0 {
			return nil, fail(http.StatusNotFound, "item %s not found", id)
		}
		items[at].ID = id // which would follow from the title
		if items[at].Fields == nil {
			items[at].Fields = map[string]string{}
		}
		err := change(&items[at])
		item = items[at]
		return items, err
	})
	return v.full(item), err
}

// noContent is an answer without a body.
type noContent struct{}

// change changes the items of a vault in the account's file.
func (a *Account) change(of Vault, change func([]Item) ([]Item, error)) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	vaults, err := a.Vaults()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(vaults, func(v Vault) bool { return v.id() == of.id() })
	if at < 0 {
		return fail(http.StatusNotFound, "vault %s not found", of.id())
	}
	if vaults[at].Items, err = change(vaults[at].Items); err != nil {
		return err
	}
	return a.save(vaults)
}

// save writes the account's file.
func (a *Account) save(vaults []Vault) error {
	text, err := yaml.Marshal(vaultsFile{vaults})
	if err != nil {
		return err
	}
	path := filepath.Join(a.dir, VaultsFile)
	if err := os.WriteFile(path+".new", append([]byte(vaultsComment), text...), 0o600); err != nil {
		return fmt.Errorf("1Password account: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("1Password account: %w", err)
	}
	return nil
}
