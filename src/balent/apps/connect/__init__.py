"""Projects connected with other labelling tools over the network: items and their order go out, answers come in."""
