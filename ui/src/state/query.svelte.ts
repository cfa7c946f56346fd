// An answer that follows its parameters. The last valid answer stays until the next one arrives: no spinner, no blank.
import { untrack } from "svelte";
import { NoServer, NotInReport, type AnswerOf, type Name, type ParamsOf } from "../rpc/client";
import { app } from "./app.svelte";

export class Query<N extends Name> {
  data = $state.raw<AnswerOf<N> | null>(null);
  error = $state("");
  /** The question is fine, but a report does not hold its answer. */
  absent = $state(false);
  /** The server is gone. */
  gone = $state(false);
  loading = $state(true);

  constructor(name: N, params: () => ParamsOf<N> | null) {
    let newest = 0;
    $effect(() => {
      const wanted = params();
      void app.revision;
      if (!wanted) return;
      const turn = ++newest;
      untrack(() => (this.loading = true));
      app.client.ask(name, wanted).then(
        (answer) => {
          if (turn !== newest) return;
          this.data = answer;
          this.error = "";
          this.absent = false;
          this.loading = false;
        },
        (problem: Error) => {
          if (turn !== newest) return;
          this.error = problem.message;
          this.absent = problem instanceof NotInReport;
          if (this.absent) this.data = null; // what stands there would be taken for the answer
          this.gone = problem instanceof NoServer;
          this.loading = false;
        },
      );
    });
  }
}
