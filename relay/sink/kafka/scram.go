package kafka

import (
	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

// scramClient is one SCRAM conversation, as sarama wants it (RFC 5802).
type scramClient struct {
	hash         scram.HashGeneratorFcn
	conversation *scram.ClientConversation
}

func newScram(hash scram.HashGeneratorFcn) func() sarama.SCRAMClient {
	return func() sarama.SCRAMClient { return &scramClient{hash: hash} }
}

// Begin implements sarama.SCRAMClient.
func (c *scramClient) Begin(user, password, authzID string) error {
	client, err := c.hash.NewClient(user, password, authzID)
	if err != nil {
		return sarama.Wrap(sarama.ErrSASLAuthenticationFailed, err)
	}
	c.conversation = client.NewConversation()
	return nil
}

// Step implements sarama.SCRAMClient. A server that cannot prove that it knows the password is a failed authentication.
func (c *scramClient) Step(challenge string) (string, error) {
	answer, err := c.conversation.Step(challenge)
	if err != nil {
		return "", sarama.Wrap(sarama.ErrSASLAuthenticationFailed, err)
	}
	return answer, nil
}

// Done implements sarama.SCRAMClient.
func (c *scramClient) Done() bool { return c.conversation.Done() }
