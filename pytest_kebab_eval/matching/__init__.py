"""Golden query + hits -> which targets were found, at which rank."""
