#!/usr/bin/env python3
"""What the official OpenAI and Anthropic clients do with a running service, unpatched.

usage: tour.py URL

The bundled checkpoint writes little sense: what is checked is the protocol. Each step prints a line; the first
that is not as it should be ends the tour with an assertion.
"""

import sys

import anthropic
import openai

MODEL = "deepseek-flash"
OFF = {"thinking": {"type": "disabled"}}
QUESTION = [{"role": "user", "content": "Where does the river run?"}]
TOOLS = [{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": {
    "type": "object", "properties": {"at": {"type": "string"}}}}}]


def step(name, detail=""):
    print(f"ok  {name}{': ' + str(detail) if detail != '' else ''}", flush=True)


def chat(client):
    create = client.chat.completions.create
    whole = create(model=MODEL, messages=QUESTION, max_tokens=24, temperature=0, extra_body=OFF)
    assert whole.choices[0].finish_reason in ("stop", "length") and whole.usage.total_tokens > 0
    step("chat", f"{whole.usage.prompt_tokens} + {whole.usage.completion_tokens} tokens")

    chunks = list(create(model=MODEL, messages=QUESTION, max_tokens=24, temperature=0, extra_body=OFF, stream=True,
                         stream_options={"include_usage": True}))
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole.choices[0].message.content and chunks[-1].usage.completion_tokens > 0
    step("chat stream is the whole answer", f"{len(chunks)} chunks")

    thought = create(model=MODEL, messages=QUESTION, max_tokens=24, reasoning_effort="low")
    assert thought.choices[0].message.reasoning_content
    step("reasoning comes apart from the content")

    several = create(model=MODEL, messages=QUESTION, max_tokens=8, n=3, seed=1, extra_body=OFF)
    assert [c.index for c in several.choices] == [0, 1, 2]
    step("n = 3")

    likely = create(model=MODEL, messages=QUESTION, max_tokens=8, logprobs=True, top_logprobs=2, temperature=0,
                    extra_body=OFF)
    entries = likely.choices[0].logprobs.content
    assert entries and all(len(e.top_logprobs) == 2 and e.logprob <= 0 for e in entries)
    step("logprobs", f"{len(entries)} tokens")

    stop = whole.choices[0].message.content[4:6]
    cut = create(model=MODEL, messages=QUESTION, max_tokens=24, temperature=0, stop=[stop], extra_body=OFF)
    assert stop not in cut.choices[0].message.content and cut.choices[0].finish_reason == "stop"
    step("stop", repr(stop))

    history = QUESTION + [
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at": "map"}'}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "to the sea"}]
    after = create(model=MODEL, messages=history, tools=TOOLS, max_tokens=8)
    assert after.usage.prompt_tokens > whole.usage.prompt_tokens
    step("tools: a call and its result in the history", f"{after.usage.prompt_tokens} prompt tokens")

    with create(model=MODEL, messages=QUESTION, max_tokens=2000, stream=True, extra_body=OFF) as stream:
        next(iter(stream))
    step("a stream can be left")


def chat_errors(client):
    for fault, names in (({"model": "no-such", "messages": QUESTION}, "model"),
                         ({"model": MODEL, "messages": []}, "messages"),
                         ({"model": MODEL, "messages": QUESTION, "temperature": 9}, "temperature")):
        try:
            client.chat.completions.create(**fault)
            raise AssertionError(f"accepted: {fault}")
        except openai.BadRequestError as error:
            assert error.param == names, error
    try:
        client.responses.create(model=MODEL, input="q", previous_response_id="resp_none")
        raise AssertionError("an unknown response was continued")
    except openai.NotFoundError as error:
        assert error.code == "previous_response_not_found"
    step("errors are of the client's own classes and name the field")


def completions_and_models(client):
    text = client.completions.create(model=MODEL, prompt="The river", max_tokens=8, temperature=0, echo=True)
    assert text.choices[0].text.startswith("The river")
    assert MODEL in [m.id for m in client.models.list()] and client.models.retrieve(MODEL).id == MODEL
    step("completions, models")


def responses(client):
    effort = {"effort": "none"}
    first = client.responses.create(model=MODEL, input="Where does the river run?", reasoning=effort,
                                    max_output_tokens=60)
    second = client.responses.create(model=MODEL, input="And then?", previous_response_id=first.id, reasoning=effort,
                                     max_output_tokens=20)
    assert second.previous_response_id == first.id and second.usage.input_tokens > first.usage.total_tokens - 2
    step("responses with a previous id", f"{second.usage.input_tokens_details.cached_tokens} of "
         f"{second.usage.input_tokens} input tokens cached")
    assert client.responses.retrieve(second.id).output_text == second.output_text
    client.responses.delete(second.id)
    try:
        client.responses.retrieve(second.id)
        raise AssertionError("deleted, and still there")
    except openai.NotFoundError:
        step("responses: retrieve, delete")
    kinds = [event.type for event in client.responses.create(model=MODEL, input="q", max_output_tokens=8, stream=True)]
    assert kinds[0] == "response.created" and kinds[-1] in ("response.completed", "response.incomplete")
    step("responses stream", f"{len(kinds)} events")


def messages(client):
    question = [{"role": "user", "content": "Where does the river run?"}]
    whole = client.messages.create(model="claude-x", max_tokens=16, messages=question)
    counted = client.messages.count_tokens(model="claude-x", messages=question)
    assert counted.input_tokens == whole.usage.input_tokens + whole.usage.cache_read_input_tokens
    step("messages, count_tokens", counted.input_tokens)
    with client.messages.stream(model=MODEL, max_tokens=24, messages=question,
                                thinking={"type": "enabled", "budget_tokens": 1024}) as stream:
        final = [event.type for event in stream]
        message = stream.get_final_message()
    assert final[0] == "message_start" and message.content[0].type == "thinking" and message.content[0].signature
    step("messages stream with thinking", f"{len(final)} events")
    tool = {"name": "look", "input_schema": {"type": "object", "properties": {"at": {"type": "string"}}}}
    history = question + [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "map"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "to the sea"}]}]
    after = client.messages.create(model="claude-x", max_tokens=8, messages=history, tools=[tool])
    assert after.stop_reason in ("max_tokens", "end_turn", "tool_use")
    step("messages: a call and its result in the history")
    stopped = client.messages.create(model="claude-x", max_tokens=40, messages=question, stop_sequences=["e", "a"],
                                     thinking={"type": "disabled"})
    assert stopped.stop_reason == "stop_sequence" and stopped.stop_sequence in ("e", "a")
    step("messages: stop sequence", stopped.stop_sequence)
    try:
        client.messages.create(model="gpt", max_tokens=1, messages=question)
        raise AssertionError("an unknown model was accepted")
    except anthropic.BadRequestError as error:
        assert error.body["error"]["type"] == "invalid_request_error"
        step("messages: errors")


def framework(url):
    from langchain_core.messages import HumanMessage
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model=MODEL, base_url=url + "/v1", api_key="none", max_tokens=8, extra_body=OFF)
    assert model.invoke([HumanMessage("Where does the river run?")]).usage_metadata["output_tokens"] > 0
    assert len(list(model.stream([HumanMessage("Where does the river run?")]))) > 1
    step("LangChain: invoke, stream")


def main():
    url = sys.argv[1].rstrip("/")
    client = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
    print(f"openai {openai.__version__}, anthropic {anthropic.__version__}")
    chat(client)
    chat_errors(client)
    completions_and_models(client)
    responses(client)
    messages(anthropic.Anthropic(base_url=url, api_key="none", max_retries=0))
    framework(url)


if __name__ == "__main__":
    main()
