package gate

var _ = fault("services-of-another-range", func(c *Cluster) { c.Services.Items[0].CIDRs = []string{"10.96.0.0/12"} })
