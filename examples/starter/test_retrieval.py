"""Records what the retriever finds for each golden query: `pytest --kebab-record RUN`."""

import re

# == Replace what is between these lines by your own retriever. ====================================
# A toy, so that this file works at once: it counts the words that a passage shares with the question.

CONFIG = {"chunker_version": "toy-1"}  # the versions of what you may change; reports say what differs

PASSAGES = {
    "opening-hours": "The library is open from nine to six, and on Sundays from noon to five.",
    "loans": "You can borrow a book for four weeks, and renew it twice.",
    "fees": "A book that you return late is a matter of ten cents for each day.",
    "rooms": "Rooms for groups are booked at the desk, for two hours at most.",
    "cards": "A card is free for people who live in town, and ten euros a year for others.",
}


def search(question):
    """The ids of the five best passages, best first."""

    def shared_words(passage_id):
        return len(words(question) & words(PASSAGES[passage_id]))

    return sorted(filter(shared_words, PASSAGES), key=shared_words, reverse=True)[:5]


def words(text):
    """The words of a text, small letters."""
    return set(re.findall(r"\w+", text.lower()))


# == To here. ======================================================================================


def test_retrieval(kebab_query, kebab_recorder):
    """One test for each golden query; a query whose search raises is recorded as an error."""
    kebab_recorder.config.update(CONFIG)
    hits = [
        {"chunk_id": passage_id, "text": PASSAGES[passage_id]} for passage_id in search(kebab_query.query)
    ]
    kebab_recorder.record(kebab_query.id, query=kebab_query.query, hits=hits)
